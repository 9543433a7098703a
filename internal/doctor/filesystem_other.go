//go:build !linux

package doctor

import "syscall"

// fileSystem knows no names here.
func fileSystem(*syscall.Statfs_t) string { return "" }
