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

// Program returns a check that reports version, platform and configuration of this program.
func Program(version, config string) Check {
	return Check{Name: ProgramCheck, Examine: func(_ context.Context, found *Findings) error {
		found.OK("smartfeed %s, %s on %s/%s, %d cores, configuration %s",
			version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), config)
		return nil
	}}
}

// Directory is the state directory of a process.
type Directory struct {
	Path     string
	MinBytes int64 // processes stop their partitions if less is free
	Files    uint64
}

// Limits of open files. The store of a partition opens up to a thousand files, and a connection one.
const (
	fewFiles  = 1024
	goodFiles = 8192
)

// Check returns the check on the directory: write permission, free space, file system, and lock. It also checks the limit
// of open files.
func (d Directory) Check() Check {
	return Check{Name: DirectoryCheck, Examine: func(_ context.Context, found *Findings) error {
		d.files(found)
		info, err := os.Stat(d.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found.Note("", "%s does not exist yet: the first start creates it", d.Path)
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", d.Path)
		}
		return errors.Join(d.space(found), d.use(found))
	}, Advice: "check dir in the configuration, its permissions, and the disk"}
}

func (d Directory) files(found *Findings) {
	switch {
	case d.Files < fewFiles:
		found.Problem("raise the limit: ulimit -n 65536, or LimitNOFILE= of the service", "the limit of open files is %d", d.Files)
	case d.Files < goodFiles:
		found.Warn("raise the limit: ulimit -n 65536, or LimitNOFILE= of the service", "the limit of open files is %d: too low for many partitions and connections", d.Files)
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

func (d Directory) space(found *Findings) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &st); err != nil {
		return fmt.Errorf("get the free space of %s: %w", d.Path, err)
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	switch {
	case free < d.MinBytes:
		found.Problem("free disk space: below rows.min_free_disk_bytes no partition commits", "%s has %d MiB free", d.Path, free>>20)
	case free < 4*d.MinBytes:
		found.Warn("free disk space", "%s has %d MiB free; below %d MiB every partition stops", d.Path, free>>20, d.MinBytes>>20)
	}
	switch kind := fileSystem(&st); kind {
	case "nfs", "cifs", "fuse":
		found.Warn("use a local disk: locks and fsync over a network are slow and unreliable", "%s is on %s", d.Path, kind)
	case "tmpfs":
		found.Warn("use a disk, unless you can lose the data when the machine restarts", "%s is in memory (tmpfs)", d.Path)
	}
	return nil
}

func (d Directory) use(found *Findings) error {
	probe, err := os.CreateTemp(d.Path, ".doctor-*")
	if err != nil {
		return err
	}
	_, err = probe.WriteString("x")
	if err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("write to %s: %w", d.Path, err)
	}
	lock, err := embedded.LockDir(d.Path)
	var locked *embedded.LockedError
	switch {
	case errors.As(err, &locked):
		found.OK("%s is writable; a process uses it", d.Path)
	case err != nil:
		return err
	default:
		found.OK("%s is writable; no process uses it", d.Path)
		return lock.Unlock()
	}
	return nil
}

// Ports returns the check whether a new process can listen on its addresses, by purpose. It runs only if ProcessCheck
// found no process.
func Ports(addresses map[string]string) Check {
	return Check{Name: PortsCheck, After: ProcessCheck, Instead: true, Examine: func(_ context.Context, found *Findings) error {
		for what, address := range addresses {
			l, err := net.Listen("tcp", address)
			switch {
			case errors.Is(err, syscall.EADDRINUSE):
				found.Problem(fmt.Sprintf("stop the other program, or choose another port: --%s HOST:PORT", what), "%s: another program uses %s", what, address)
			case err != nil:
				found.Problem(fmt.Sprintf("choose an address of this machine: --%s HOST:PORT", what), "%s: %v", what, err)
			default:
				_ = l.Close() // nothing was sent
			}
		}
		if len(*found) == 0 {
			found.OK("the ports of http, kafka and registry are free")
		}
		return nil
	}}
}
