// Package jsonbound limits the memory of decoded JSON from other systems. A limit on its length is not sufficient: an
// empty object has two bytes, and can decode to a struct of hundreds of bytes.
package jsonbound

import "fmt"

// Check returns an error if a JSON text has more than most values: objects, arrays, and members of either. It counts an
// object or an array that is itself a member twice, and does not check whether the text is valid. It allocates nothing.
func Check(text []byte, most int) error {
	if n := Values(text); n > most {
		return fmt.Errorf("response has %d JSON values: want at most %d", n, most)
	}
	return nil
}

// Values returns an upper bound of the number of values in a JSON text, as Check counts them.
func Values(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}
