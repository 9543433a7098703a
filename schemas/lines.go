package schemas

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrLongLine is returned for a line that is longer than MaxLineBytes.
var ErrLongLine = fmt.Errorf("longer than %d bytes", MaxLineBytes)

// LineReader splits its input into lines, one event per line.
type LineReader struct {
	in   *bufio.Reader
	line []byte
}

// NewLineReader returns a LineReader with a buffer of the given size in bytes, at least 16.
func NewLineReader(in io.Reader, buffer int) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, buffer)}
}

// Next returns the next line without surrounding spaces, tabs and line ends. The line may be empty, and is valid until the
// next call. Next skips a line that is too long and returns ErrLongLine. After the last line it returns io.EOF.
func (r *LineReader) Next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		const limit = MaxLineBytes + len("\r\n")
		remaining := limit + 1 - len(r.line) // one more byte shows that the line is too long
		r.line = append(r.line, part[:min(len(part), remaining)]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(r.line) == 0):
			return nil, err
		}
		line := bytes.Trim(r.line, " \t\r\n")
		if len(line) > MaxLineBytes || len(r.line) > limit {
			return nil, ErrLongLine
		}
		return line, nil
	}
}
