package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The directory size is checked every second near the limit, which the broker may therefore exceed by what it writes in a second.
// Further from the limit, checks are rare: each reads the sizes of all files, which took a fifth of the CPU time at rest.
const (
	minSizeInterval = time.Second
	maxSizeInterval = 10 * time.Second
	maxWriteRate    = 500 << 20 // bytes per second, more than the broker accepts
)

// sizeInterval returns the time until the next check if so many bytes are left.
func sizeInterval(left int64) time.Duration {
	seconds := time.Duration(left/maxWriteRate) * time.Second
	return min(max(seconds, minSizeInterval), maxSizeInterval)
}

// watch stops the server when the directory exceeds its limit, or when the registry can no longer serve.
func (s *Server) watch(ctx context.Context) {
	check := time.NewTimer(minSizeInterval)
	defer check.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-s.registry.failed:
			_ = s.end(err)
			return
		case <-check.C:
			left, err := s.checkSize()
			if err != nil {
				_ = s.end(err) // Run returns the cause; an error of the close is secondary
				return
			}
			check.Reset(sizeInterval(left))
		}
	}
}

// checkSize returns how many bytes the directory may still grow, or a *FullError.
func (s *Server) checkSize() (left int64, err error) {
	n, err := dirSize(s.cfg.Dir)
	if err != nil {
		return 0, err
	}
	if n > s.cfg.MaxBytes {
		return 0, &FullError{Dir: s.cfg.Dir, Bytes: n, Max: s.cfg.MaxBytes}
	}
	return s.cfg.MaxBytes - n, nil
}

// dirSize returns the total size of all files below dir. A file that is deleted meanwhile counts as 0.
func dirSize(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				sum += info.Size()
			}
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	return sum, err
}
