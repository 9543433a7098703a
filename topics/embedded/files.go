package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// disk changes files.
type disk struct {
	sync bool                                 // fsync written files
	step func(path string, data []byte) error // called before each change; an error prevents the change. nil: no call
}

func (d disk) before(path string, data []byte) error {
	if d.step == nil {
		return nil
	}
	return d.step(path, data)
}

// replace writes data to a temporary file and renames it to path. After a crash of the process, path has either the old or
// the new bytes. With sync, this also holds after a crash of the machine.
func (d disk) replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if d.sync && err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), d.before(path, data)); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// append appends data to a file.
func (d disk) append(path string, data []byte) error {
	if err := d.before(path, data); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if d.sync && err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// truncate shortens a file.
func (d disk) truncate(path string, size int64) error {
	if err := d.before(path, nil); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// readJSON reads a JSON file. It reports whether the file exists.
func readJSON(path string, into any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}
