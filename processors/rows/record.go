package rows

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// Getter reads rows by name. Owner and Snapshot implement it.
type Getter interface {
	Get(row []byte) ([]byte, error)
}

// Value reads a row of a packed type. It returns the zero value and false if there is no such row, and an Unreadable error if
// it cannot be decoded.
func Value[T any, R packed.Row[T]](from Getter, row []byte) (value T, found bool, err error) {
	b, err := from.Get(row)
	if err != nil || b == nil {
		return value, false, err
	}
	if value, err = packed.Decode[T, R](b); err != nil {
		return value, false, Unreadable(row, err)
	}
	return value, true, nil
}

// RowReader reads the rows of one owner. Owner and Snapshot implement it.
type RowReader interface {
	Getter
	Scan(s Scan, visit func(row, value []byte) bool) error
}

// Each visits the rows of a packed type that have a prefix, in order. rest is the name of a row without the prefix. It returns
// an Unreadable error for a row that cannot be decoded.
func Each[T any, R packed.Row[T]](from RowReader, prefix []byte, visit func(rest string, value T)) error {
	return ForEach(from, Scan{Prefix: prefix}, func(row, b []byte) (bool, error) {
		value, err := packed.Decode[T, R](b)
		if err != nil {
			return false, Unreadable(row, err)
		}
		visit(string(row[len(prefix):]), value)
		return true, nil
	})
}

// ForEach calls visit with the rows of a scan until it returns false or an error. ForEach returns that error, or the error of
// the scan. The arguments of visit are valid only during the call.
func ForEach(from RowReader, s Scan, visit func(row, value []byte) (more bool, err error)) error {
	var bad error
	err := from.Scan(s, func(row, value []byte) (more bool) {
		more, bad = visit(row, value)
		return more && bad == nil
	})
	return cmp.Or(err, bad)
}

// Names returns the names of the first limit rows with a prefix; 0: of all.
func Names(from RowReader, prefix []byte, limit int) (names [][]byte, err error) {
	err = ForEach(from, Scan{Prefix: prefix, Limit: limit}, func(row, _ []byte) (bool, error) {
		names = append(names, bytes.Clone(row))
		return true, nil
	})
	return names, err
}

// PutValue writes a row of a packed type.
func PutValue[T any, R packed.Row[T]](o Owner, row []byte, value R) error {
	return o.Put(row, packed.Encode[T](value))
}

// Validate returns a *schemas.BadRecordError unless the input event of the current record is valid and has the record's key;
// see schemas.ValidateRecord.
func Validate(tx *Tx, e schemas.Input, verbs schemas.Verbs) error {
	return schemas.ValidateRecord(e, tx.Key(), schemas.MicrosOf(tx.Time()), verbs)
}

// Send encodes rec and emits it to the stream's topic under key.
func Send[T any](tx *Tx, s topics.Stream[T], key string, rec *T) error {
	value, err := encoded(s, rec)
	if err != nil {
		return err
	}
	return tx.Emit(s.Name, key, value)
}

// SendTo encodes rec and emits it to one partition of the stream's topic. The key does not determine the partition.
func SendTo[T any](tx *Tx, s topics.Stream[T], partition int32, key string, rec *T) error {
	value, err := encoded(s, rec)
	if err != nil {
		return err
	}
	return tx.EmitTo(s.Name, partition, key, value)
}

// Record reads a row that holds a record of s, or nil if there is none. If the row cannot be decoded, it returns an
// Unreadable error.
func Record[T any](o Owner, row []byte, s topics.Stream[T]) (*T, error) {
	value, err := o.Get(row)
	if err != nil || value == nil {
		return nil, err
	}
	rec, err := s.Decode(value)
	if err != nil {
		return nil, fmt.Errorf("read a record of %s of %q: %w", s.Name, o.name, Unreadable(row, err))
	}
	return rec, nil
}

// PutRecord encodes rec and writes it as a row.
func PutRecord[T any](o Owner, row []byte, s topics.Stream[T], rec *T) error {
	_, err := putEncoded(o, row, s, rec)
	return err
}

// PutAndSend writes rec as a row, like PutRecord, and emits the same bytes, like Send.
func PutAndSend[T any](o Owner, row []byte, s topics.Stream[T], key string, rec *T) error {
	value, err := putEncoded(o, row, s, rec)
	if err != nil {
		return err
	}
	return o.tx.Emit(s.Name, key, value)
}

// PutAndSendLatest is PutAndSend for a record that is the state of the row: if a transaction contains several for one row, it sends
// only the last one.
func PutAndSendLatest[T any](o Owner, row []byte, s topics.Stream[T], key string, rec *T) error {
	value, err := putEncoded(o, row, s, rec)
	if err != nil {
		return err
	}
	return o.tx.emitLatest(s.Name, key, value)
}

// putEncoded writes rec as a row and returns its bytes.
func putEncoded[T any](o Owner, row []byte, s topics.Stream[T], rec *T) ([]byte, error) {
	value, err := encoded(s, rec)
	if err != nil {
		return nil, err
	}
	return value, o.Put(row, value)
}

func encoded[T any](s topics.Stream[T], rec *T) ([]byte, error) {
	value, err := s.Encode(rec)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", s.Name, err)
	}
	return value, nil
}

// Unreadable returns an error for a row that cannot be decoded. It is not a *schemas.BadRecordError, because the input
// record is not the cause and must not go to the dead-letter topic.
func Unreadable(row []byte, err error) error {
	return fmt.Errorf("decode row %q: %v", row, err)
}
