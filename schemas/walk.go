package schemas

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// maxDepth is the maximum nesting depth of a record's values. The schemas of this package need five.
const maxDepth = 64

var (
	errShort        = errors.New("unexpected end")
	errNumber       = errors.New("number too long")
	errLength       = errors.New("negative length")
	errText         = errors.New("not UTF-8")
	errDeep         = errors.New("nested too deep")
	errTooManyEmpty = errors.New("too many empty values")
)

// conform checks that body is exactly one complete value of schema n. It allocates nothing unless it fails. The length of body
// bounds its time, regardless of the lengths that the body declares and of repetitions in the schema. Every received body is
// checked before the Avro library reads a byte.
func conform(n *node, body []byte) error {
	c := cursor{b: body}
	if err := c.walk(n); err != nil {
		return fmt.Errorf("%w (byte %d of %d)", err, c.pos, len(body))
	}
	if left := c.left(); left != 0 {
		return fmt.Errorf("%d trailing bytes", left)
	}
	return nil
}

// cursor reads Avro's binary encoding.
type cursor struct {
	b           []byte
	pos         int
	depth       int
	emptyValues int // values without bytes that were read
}

func (c *cursor) left() int { return len(c.b) - c.pos }

// countEmpty counts a null or a record, which take no bytes. A schema of a few hundred bytes can require any
// number of them (records of two records each, and so on), so that the walk would never end.
func (c *cursor) countEmpty() error {
	if c.emptyValues++; c.emptyValues > 1<<16+16*len(c.b) {
		return errTooManyEmpty
	}
	return nil
}

// walk reads one value of schema n.
func (c *cursor) walk(n *node) error {
	switch n.kind {
	case kindNull:
		return c.countEmpty()
	case kindBoolean:
		return c.boolean()
	case kindInt:
		_, err := c.int()
		return err
	case kindLong:
		_, err := c.long()
		return err
	case kindFloat:
		return c.skip(4)
	case kindDouble:
		return c.skip(8)
	case kindFixed:
		return c.skip(n.size)
	case kindBytes:
		_, err := c.bytes()
		return err
	case kindString:
		return c.text()
	case kindEnum:
		_, err := c.index(len(n.symbols))
		return err
	}
	return c.nested(n)
}

func (c *cursor) nested(n *node) error {
	if c.depth == maxDepth {
		return errDeep
	}
	c.depth++
	var err error
	switch n.kind {
	case kindRecord:
		err = c.record(n)
	case kindUnion:
		var i int
		if i, err = c.index(len(n.branches)); err == nil {
			err = c.walk(n.branches[i])
		}
	case kindArray, kindMap:
		err = c.blocks(n)
	default:
		err = fmt.Errorf("unknown type %d", n.kind)
	}
	c.depth--
	return err
}

func (c *cursor) record(n *node) error {
	if err := c.countEmpty(); err != nil {
		return err
	}
	for i := range n.fields {
		if err := c.walk(n.fields[i].node); err != nil {
			return fmt.Errorf("%s: %w", n.fields[i].name, err)
		}
	}
	return nil
}

// blocks reads the blocks of an array or map.
func (c *cursor) blocks(n *node) error {
	min := n.items.min // bytes of an item
	if n.kind == kindMap {
		min++ // the length of its key
	}
	for {
		count, end, err := c.block(min)
		if count == 0 || err != nil {
			return err
		}
		for i := range count {
			if err := c.item(n); err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
		}
		if end >= 0 && c.pos != end {
			return errors.New("block does not have its declared size")
		}
	}
}

// item reads an item of an array, or a key and value of a map.
func (c *cursor) item(n *node) error {
	if n.kind == kindMap {
		if err := c.text(); err != nil {
			return err
		}
	}
	return c.walk(n.items)
}

// block reads the head of a block: the number of items (0 after the last block) and the end of the block (-1 if it is not
// given). It returns an error if the items do not fit the rest of the input.
func (c *cursor) block(min int) (count, end int, err error) {
	n, err := c.long()
	if err != nil {
		return 0, -1, err
	}
	end = -1
	if n < 0 {
		if end, err = c.blockEnd(); err != nil {
			return 0, -1, err
		}
		n = -n // math.MinInt64 stays negative
	}
	if n < 0 || n > int64(c.left()/max(min, 1)) {
		return 0, -1, fmt.Errorf("block of %d items in %d bytes", uint64(n), c.left())
	}
	return int(n), end, nil
}

func (c *cursor) blockEnd() (int, error) {
	size, err := c.length()
	return c.pos + size, err
}

// long reads a zig-zag encoded number of at most 64 bits.
func (c *cursor) long() (int64, error) {
	if c.pos < len(c.b) && c.b[c.pos] < 0x80 { // most numbers take one byte
		b := c.b[c.pos]
		c.pos++
		return int64(b>>1) ^ -int64(b&1), nil
	}
	var v uint64
	for i, b := range c.b[c.pos:] {
		if i == 9 && b > 1 {
			return 0, errNumber
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			c.pos += i + 1
			return int64(v>>1) ^ -int64(v&1), nil
		}
	}
	return 0, errShort
}

// int reads a zig-zag encoded number of at most 32 bits in at most five bytes.
func (c *cursor) int() (int32, error) {
	start := c.pos
	v, err := c.long()
	if err != nil {
		return 0, err
	}
	if c.pos-start > 5 || v < math.MinInt32 || v > math.MaxInt32 {
		return 0, errNumber
	}
	return int32(v), nil
}

// index reads the index of a union's branch or an enum's symbol.
func (c *cursor) index(n int) (int, error) {
	i, err := c.int()
	if err == nil && (i < 0 || int(i) >= n) {
		return 0, fmt.Errorf("choice %d of %d", i, n)
	}
	return int(i), err
}

func (c *cursor) boolean() error {
	if c.left() > 0 && c.b[c.pos] > 1 {
		return errors.New("not a boolean")
	}
	return c.skip(1)
}

func (c *cursor) skip(n int) error {
	if n > c.left() {
		return errShort
	}
	c.pos += n
	return nil
}

// length reads a length that does not exceed the rest of the input.
func (c *cursor) length() (int, error) {
	n, err := c.long()
	switch {
	case err != nil:
		return 0, err
	case n < 0:
		return 0, errLength
	case n > int64(c.left()):
		return 0, errShort
	}
	return int(n), nil
}

// bytes reads bytes or a string. The result is a slice of the input.
func (c *cursor) bytes() ([]byte, error) {
	n, err := c.length()
	if err != nil {
		return nil, err
	}
	c.pos += n
	return c.b[c.pos-n : c.pos], nil
}

func (c *cursor) text() error {
	b, err := c.bytes()
	if err == nil && !utf8.Valid(b) {
		return errText
	}
	return err
}
