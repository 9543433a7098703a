package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/smartfeed/smartfeed/topics/embedded"
)

// Names of the checks on this machine.
const (
	ProgramCheck   = "program"
	DirectoryCheck = "directory"
	PortsCheck     = "ports"
)

// Program returns the check that reports the program itself.
func Program(version, config string) Check {
	return Check{Name: ProgramCheck, Look: func(_ context.Context, found *Findings) {
		found.OK("smartfeed %s, %s on %s/%s, %d cores, configuration %s",
			version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), config)
	}}
}

// Directory is the state directory of a process.
type Directory struct {
	Path     string
	MinBytes int64 // processes stop their partitions if less is free
	Files    uint64
}

// Limits of open files. The store of a partition has up to a thousand, a connection one.
const (
	fewFiles  = 1024
	goodFiles = 8192
)

// Check returns the check on the directory: whether it is writable, its free space, its file system and who uses it. It
// also checks the limit of open files.
func (d Directory) Check() Check {
	return Check{Name: DirectoryCheck, Look: func(_ context.Context, found *Findings) {
		d.files(found)
		info, err := os.Stat(d.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found.Note("", "%s is not there: the first start makes it", d.Path)
			return
		case err != nil:
			found.Problem("check dir in the configuration and who may read it", "%v", err)
			return
		case !info.IsDir():
			found.Problem("check dir in the configuration", "%s is no directory", d.Path)
			return
		}
		d.room(found)
		d.use(found)
	}}
}

func (d Directory) files(found *Findings) {
	switch {
	case d.Files < fewFiles:
		found.Problem("raise it: ulimit -n 65536, or LimitNOFILE= of the service", "a process may open %d files only", d.Files)
	case d.Files < goodFiles:
		found.Warn("raise it: ulimit -n 65536, or LimitNOFILE= of the service", "a process may open %d files: few for many partitions and callers", d.Files)
	}
}

// OpenFiles returns the limit of open files of this process, or 0 if the system does not report it.
func OpenFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}

func (d Directory) room(found *Findings) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &st); err != nil {
		found.Problem("mend the disk", "ask the file system of %s: %v", d.Path, err)
		return
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	switch {
	case free < d.MinBytes:
		found.Problem("make room: below rows.min_disk_bytes nothing is committed", "%s has %s free", d.Path, bytesOf(free))
	case free < 4*d.MinBytes:
		found.Warn("make room soon", "%s has %s free; at %s everything stops", d.Path, bytesOf(free), bytesOf(d.MinBytes))
	}
	switch kind := fileSystem(&st); kind {
	case "nfs", "cifs", "fuse":
		found.Warn("use a local disk: locks and fsync over a network are slow, and not always true", "%s is on %s", d.Path, kind)
	case "tmpfs":
		found.Warn("use a disk, unless it may be gone after a restart of the machine", "%s is in memory (tmpfs)", d.Path)
	}
}

func (d Directory) use(found *Findings) {
	probe, err := os.CreateTemp(d.Path, ".doctor-*")
	if err != nil {
		found.Problem("let this user write there, or mend the disk", "%v", err)
		return
	}
	_, err = probe.WriteString("x")
	if err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name())); err != nil {
		found.Problem("mend the disk", "write to %s: %v", d.Path, err)
		return
	}
	lock, err := embedded.LockDir(d.Path)
	var locked *embedded.LockedError
	switch {
	case errors.As(err, &locked):
		found.OK("%s can be written; a process uses it", d.Path)
	case err != nil:
		found.Problem("let this user write there", "%v", err)
	default:
		found.OK("%s can be written; no process uses it", d.Path)
		if err := lock.Unlock(); err != nil {
			found.Warn("look at the file system", "give the lock back: %v", err)
		}
	}
}

// bytesOf formats a size.
func bytesOf(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, names := float64(n)/unit, "KMGTP"
	for size >= unit && len(names) > 1 {
		size, names = size/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %ciB", size, names[0])
}

// Ports returns the check whether a new process could listen on its addresses, given by purpose. It runs if
// ProcessCheck found no process.
func Ports(addresses map[string]string) Check {
	return Check{Name: PortsCheck, After: ProcessCheck, Instead: true, Look: func(_ context.Context, found *Findings) {
		for what, address := range addresses {
			l, err := net.Listen("tcp", address)
			if errors.Is(err, syscall.EADDRINUSE) {
				found.Problem(fmt.Sprintf("stop what listens there, or choose another port: --%s HOST:PORT", what), "%s: something else listens on %s", what, address)
				continue
			}
			if err != nil {
				found.Problem(fmt.Sprintf("choose an address of this machine: --%s HOST:PORT", what), "%s: %v", what, err)
				continue
			}
			if err := l.Close(); err != nil {
				found.Warn("", "%s: %v", what, err)
			}
		}
		if len(*found) == 0 {
			found.OK("those of http, kafka and registry are free")
		}
	}}
}
