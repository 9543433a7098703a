// Package memory measures the memory of the process, for benchmarks.
package memory

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is the memory of this process, in MiB.
type Memory struct {
	Resident float64 // now
	Peak     float64 // maximum so far
}

// Held returns the memory of this process. It reads /proc/self/status (proc_pid_status(5)) on Linux, and returns an
// error on other systems.
func Held() (m Memory, err error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of this process: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "VmRSS":
			m.Resident, err = mebibytes(value)
		case "VmHWM":
			m.Peak, err = mebibytes(value)
		}
		if err != nil {
			return Memory{}, fmt.Errorf("read the memory of this process: %q: %w", line, err)
		}
	}
	return m, nil
}

// mebibytes parses a size in the format of the system: in kB, which means 1024 bytes.
func mebibytes(size string) (float64, error) {
	kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
	return float64(kb) / 1024, err
}
