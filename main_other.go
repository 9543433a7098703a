//go:build !unix

package main

// keepFilesPrivate does nothing: files inherit the permissions of the directory.
func keepFilesPrivate() {}
