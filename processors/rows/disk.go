package rows

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// LowDiskError is returned when the disk of the local stores is nearly full. Nothing is committed until there is space
// again.
type LowDiskError struct {
	Dir       string
	Free, Min int64 // bytes
}

// Error returns a message that says what to do.
func (e *LowDiskError) Error() string {
	return fmt.Sprintf("disk of %s has %d bytes free, less than min_disk_bytes %d: make room", e.Dir, e.Free, e.Min)
}

// DiskError is returned when the disk of a local store refuses writes: it is full in spite of Config.MinDiskBytes, read-only
// or broken. Nothing is committed until the store can be opened again. Rows that were not written are read from the
// changelog.
type DiskError struct {
	Dir string
	Err error // from the operating system
}

// Error returns a message that says what to do.
func (e *DiskError) Error() string {
	return fmt.Sprintf("disk of %s refuses writes: %v: mend it", e.Dir, e.Err)
}

// Unwrap returns the operating system's error.
func (e *DiskError) Unwrap() error { return e.Err }

// checkDisk returns an error when less than Config.MinDiskBytes is free or the disk is read-only. Partitions then stop
// before a write fails, after which Pebble could not continue.
func (r *Runner) checkDisk() error {
	free, err := r.free(r.cfg.Dir)
	if err != nil {
		return &DiskError{Dir: r.cfg.Dir, Err: err}
	}
	if free < r.cfg.MinDiskBytes {
		return &LowDiskError{Dir: r.cfg.Dir, Free: free, Min: r.cfg.MinDiskBytes}
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
	return int64(st.Bavail) * st.Bsize, nil
}
