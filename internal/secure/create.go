package secure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// CreateFile creates a file that only its owner can read, unless it exists. It reports whether it did. If several processes
// create the file at the same time, one of them succeeds, and no process reads a part of the content.
func CreateFile(file string, content []byte) (created bool, err error) {
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*") // mode 0600
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.Remove(temp.Name())) }()
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return false, err
	}
	// A link, unlike a rename, does not replace an existing file.
	if err := os.Link(temp.Name(), file); !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	return false, nil
}
