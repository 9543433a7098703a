// Package durable writes files that survive a crash of the machine: a file's content and its name are on disk only after a sync of
// the file and of its folder.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Folder creates a folder, and its parents, for this user only. When it returns, the folder's name is on disk.
func Folder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder returns when the names of the files in a folder are on disk.
func SyncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Write creates a file. When it returns, the content is on disk. Rename writes the name.
func Write(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Sync(), f.Close())
}

// Rename renames a file. When it returns, the new name is on disk.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(to))
}

// temp ends the names of incomplete files. It does not match the patterns of readers.
const temp = ".tmp"

// Replace writes a file under the name path.tmp and renames it. After an error, a previous file is unchanged.
func Replace(path string, write func(io.Writer) error) error {
	defer os.Remove(path + temp) // fails if it was renamed
	if err := Write(path+temp, write); err != nil {
		return err
	}
	return Rename(path+temp, path)
}
