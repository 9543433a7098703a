// Package memory measures the memory of processes, for benchmarks.
package memory

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is the memory of a process, in MiB.
type Memory struct {
	Resident float64 // now
	Peak     float64 // maximum so far
}

// Held returns the memory of this process.
func Held() (Memory, error) { return Of(os.Getpid()) }

// Of returns the memory of a process. It reads /proc/PID/status (proc_pid_status(5)) on Linux, and returns an error on
// other systems.
func Of(pid int) (m Memory, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "VmRSS":
			m.Resident, err = mebibytes(value)
		case "VmHWM":
			m.Peak, err = mebibytes(value)
		}
		if err != nil {
			return Memory{}, fmt.Errorf("read the memory of process %d: %q: %w", pid, line, err)
		}
	}
	return m, nil
}

// mebibytes parses a size in the format of the system: in kB, which means 1024 bytes.
func mebibytes(size string) (float64, error) {
	kb, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
	return float64(kb) / 1024, err
}
