//go:build !linux

package doctor

import "syscall"

// fileSystem knows no file systems on this platform.
func fileSystem(*syscall.Statfs_t) string { return "" }
