//go:build unix

package main

import "syscall"

// keepFilesPrivate makes files and directories that the process creates, those of libraries included, its user's alone.
func keepFilesPrivate() { syscall.Umask(0o077) }
