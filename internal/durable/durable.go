// Package durable writes files that survive a crash of the machine: a file's content and its name are on disk only after a sync of
// the file and of its folder.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// temp ends the names of incomplete files. It does not match the patterns of readers.
const temp = ".tmp"

// Replace writes a file under the name path.tmp and renames it. After an error, a previous file is unchanged.
func Replace(path string, write func(io.Writer) error) error {
	defer os.Remove(path + temp) // fails if it was renamed
	f, err := os.Create(path + temp)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+temp, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder returns when the names of the files in a folder are on disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
