package rows

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// LowDiskError says that the disk of the local stores is nearly full. Nothing is committed until there is room again.
type LowDiskError struct {
	Dir       string
	Free, Min int64 // bytes
}

// Error says what to do.
func (e *LowDiskError) Error() string {
	return fmt.Sprintf("disk of %s has %d bytes free, less than min_disk_bytes %d: make room", e.Dir, e.Free, e.Min)
}

// DiskError says that the disk of a local store refuses writes: it is full in spite of Config.MinDiskBytes, read-only, or
// broken. Nothing is committed until the store can be opened again; what it had not written is read from the changelog.
type DiskError struct {
	Dir string
	Err error // the system's
}

// Error says what to do.
func (e *DiskError) Error() string {
	return fmt.Sprintf("disk of %s refuses writes: %v: mend it", e.Dir, e.Err)
}

// Unwrap returns the system's error.
func (e *DiskError) Unwrap() error { return e.Err }

// checkDisk fails when there is less room than Config.MinDiskBytes, or the disk is read-only. Partitions stop
// because of it before a write fails: Pebble could not go on after that.
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

// freeBytes asks the file system of dir, or of the nearest directory above it that exists.
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
