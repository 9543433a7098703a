package rows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// DiskError is returned when the disk of the local stores is nearly full, or refuses writes: it is full in spite of
// Config.MinFreeDiskBytes, read-only or broken. Nothing is committed until the disk accepts writes again. Rows that
// were not written are read from the changelog.
type DiskError struct {
	Dir string
	Err error // ErrLowDisk, or the operating system's error
}

// ErrLowDisk is the cause of a DiskError when less than Config.MinFreeDiskBytes is free.
var ErrLowDisk = errors.New("nearly full")

// Error returns a message that names the directory.
func (e *DiskError) Error() string { return fmt.Sprintf("disk of %s: %v", e.Dir, e.Err) }

// Unwrap returns the cause.
func (e *DiskError) Unwrap() error { return e.Err }

// checkDisk returns an error when less than Config.MinFreeDiskBytes is free or the disk is read-only. Partitions then stop
// before a write fails, after which Pebble could not continue.
func (r *Runner) checkDisk() error {
	free, err := r.freeBytes(r.cfg.Dir)
	if err != nil {
		return &DiskError{r.cfg.Dir, err}
	}
	if free < int64(r.cfg.MinFreeDiskBytes) {
		return &DiskError{r.cfg.Dir, fmt.Errorf("%w: %d bytes are free, less than min_free_disk_bytes %s: free disk space", ErrLowDisk, free, r.cfg.MinFreeDiskBytes)}
	}
	return nil
}

// readOnly is ST_RDONLY of statfs(2).
const readOnly = 1

// freeBytes returns the free space in the file system of dir, or of its nearest parent that exists.
func freeBytes(dir string) (int64, error) {
	var st syscall.Statfs_t
	err := syscall.Statfs(dir, &st)
	for os.IsNotExist(err) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		err = syscall.Statfs(dir, &st)
	}
	if err != nil {
		return 0, err
	}
	if st.Flags&readOnly != 0 {
		return 0, syscall.EROFS
	}
	return int64(st.Bavail * uint64(st.Bsize)), nil // Bsize has another type on macOS
}
