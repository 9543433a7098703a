//go:build unix

package main

import "syscall"

// keepFilesPrivate sets the umask: only the user of the process has access to files that it and its libraries create.
func keepFilesPrivate() { syscall.Umask(0o077) }
