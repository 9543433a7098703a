package embedded

import (
	"log/slog"
	"net"
)

// RecoverDir is recoverDir with a step before each file change.
func RecoverDir(dir string, step func(path string, data []byte) error) error {
	return recoverDir(dir, disk{step: step})
}

// OpenRegistry serves only a registry, with a step before each change of its file.
func OpenRegistry(path string, l net.Listener, step func(path string, data []byte) error) (url string, end func() error, err error) {
	r, err := openRegistry(path, disk{step: step}, l, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", nil, err
	}
	return r.url(), r.close, nil
}

// Guard returns a connection that delivers only valid requests.
func Guard(conn net.Conn) net.Conn { return &guardedConn{Conn: conn} }
