//go:build !unix

package main

// keepFilesPrivate does nothing: permissions are those of the directory.
func keepFilesPrivate() {}
