package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// sizeInterval is the interval between checks of the directory size. At a few hundred MB/s, more than the broker accepts,
// the limit is exceeded by about a gigabyte.
const sizeInterval = time.Second

// watch stops the server when the directory exceeds its limit, or when the registry can no longer serve.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(sizeInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-s.registry.failed:
			_ = s.end(err)
			return
		case <-tick.C:
			if err := s.checkSize(); err != nil {
				_ = s.end(err) // Run returns the cause; an error of the close is secondary
				return
			}
		}
	}
}

func (s *Server) checkSize() error {
	n, err := dirSize(s.cfg.Dir)
	if err != nil {
		return err
	}
	if n > s.cfg.MaxBytes {
		return &FullError{Dir: s.cfg.Dir, Bytes: n, Max: s.cfg.MaxBytes}
	}
	return nil
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
