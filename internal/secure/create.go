package secure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadOrCreate returns the content of a file. If the file does not exist, it creates the file with the given content, and the
// folder, so that only the owner can read it, and created is true. If several processes create the file at the same time, all
// get the content of the same one.
func LoadOrCreate(file string, content []byte) (loaded []byte, created bool, err error) {
	loaded, err = os.ReadFile(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return loaded, false, err
	}
	if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
		created, err = createFile(file, content)
	}
	if err == nil {
		loaded, err = os.ReadFile(file)
	}
	return loaded, created, err
}

// createFile creates a file unless it exists, and reports whether it did. No process reads a part of the content.
func createFile(file string, content []byte) (created bool, err error) {
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
