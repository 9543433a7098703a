package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// disk is how files are changed.
type disk struct {
	sync bool                                 // flush what is written
	step func(path string, data []byte) error // called before each change; its error leaves it undone. nil: none
}

func (d disk) before(path string, data []byte) error {
	if d.step == nil {
		return nil
	}
	return d.step(path, data)
}

// replace writes data beside path and renames: after a crash of the process at any moment path holds the old bytes
// or the new; with sync also after one of the machine.
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

// append writes data behind what the file holds.
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

// truncate cuts a file off.
func (d disk) truncate(path string, size int64) error {
	if err := d.before(path, nil); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// readJSON says whether the file is there.
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
