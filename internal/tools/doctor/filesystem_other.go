//go:build !linux

package doctor

import "syscall"

// fileSystem is not implemented on this platform.
func fileSystem(*syscall.Statfs_t) string { return "" }
