package schemas

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrLongLine says that a line is longer than an event can be, which is MaxLineBytes.
var ErrLongLine = fmt.Errorf("longer than %d bytes", MaxLineBytes)

// LineReader cuts what events are read from into lines, one event a line.
type LineReader struct {
	in   *bufio.Reader
	line []byte
}

// NewLineReader makes a LineReader that reads through a buffer of so many bytes, at least 16.
func NewLineReader(in io.Reader, buffer int) *LineReader {
	return &LineReader{in: bufio.NewReaderSize(in, buffer)}
}

// Next returns the next line without the spaces, tabs and line ends around it, which may leave nothing; it stands until the
// next call. A line that is too long is read to its end and not kept, ErrLongLine; after the last line comes io.EOF.
func (r *LineReader) Next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		const most = MaxLineBytes + len("\r\n")
		room := most + 1 - len(r.line) // one more shows that it is too long
		r.line = append(r.line, part[:min(len(part), room)]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(r.line) == 0):
			return nil, err
		}
		line := bytes.Trim(r.line, " \t\r\n")
		if len(line) > MaxLineBytes || len(r.line) > most {
			return nil, ErrLongLine
		}
		return line, nil
	}
}
