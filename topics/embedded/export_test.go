package embedded

// RecoverDir is recoverDir with a step before each change of a file.
func RecoverDir(dir string, step func(path string, data []byte) error) error {
	return recoverDir(dir, disk{step: step})
}
