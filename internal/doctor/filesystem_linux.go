package doctor

import "syscall"

// fileSystem names those file systems that a check has something to say of, by the magic numbers of statfs(2).
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
