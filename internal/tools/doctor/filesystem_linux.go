package doctor

import "syscall"

// fileSystem returns the name of a network or memory file system, by the magic number of statfs(2), and "" for others.
func fileSystem(st *syscall.Statfs_t) string {
	switch uint32(st.Type) {
	case 0x6969:
		return "nfs"
	case 0xff534d42, 0xfe534d42, 0x517b:
		return "cifs"
	case 0x65735546:
		return "fuse"
	case 0x01021994:
		return "tmpfs"
	}
	return ""
}
