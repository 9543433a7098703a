package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// sizeInterval is how often the size of the directory is looked at. At a few hundred MB/s, more than the broker takes
// in, the limit is overrun by about a gigabyte.
const sizeInterval = time.Second

// watch ends the server when the directory has outgrown its limit, or the registry cannot serve any more.
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
				_ = s.end(err) // what failed says more than what closing it says
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

// dirSize adds up the sizes of all files below dir. A file that goes while it looks counts nothing.
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
