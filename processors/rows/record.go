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

// Load is Value for a callback: a row that cannot be read or decoded fails the transaction, and counts as missing.
func Load[T any, R packed.Row[T]](o Owner, row []byte) (value T, found bool) {
	value, found, err := Value[T, R](o, row)
	o.Fail(err)
	return value, found
}

// LoadEach is Each for a callback: an error fails the transaction.
func LoadEach[T any, R packed.Row[T]](o Owner, prefix []byte, visit func(rest string, value T)) {
	o.Fail(Each[T, R](o, prefix, visit))
}

// LoadRows is ForEach for a callback: an error fails the transaction.
func LoadRows(o Owner, s Scan, visit func(row, value []byte) (more bool, err error)) {
	o.Fail(ForEach(o, s, visit))
}

// LoadNames is Names for a callback: an error fails the transaction.
func LoadNames(o Owner, prefix []byte, limit int) [][]byte {
	names, err := Names(o, prefix, limit)
	o.Fail(err)
	return names
}

// DeleteAll deletes the first limit rows whose names start with prefix, or all if limit is 0.
func DeleteAll(o Owner, prefix []byte, limit int) {
	for _, name := range LoadNames(o, prefix, limit) {
		o.Delete(name)
	}
}

// PutValue writes a row of a packed type.
func PutValue[T any, R packed.Row[T]](o Owner, row []byte, value R) {
	if o.tx.open() {
		s := o.tx.s
		s.encoded = packed.AppendRow[T](s.encoded[:0], value)
		o.Put(row, s.encoded)
	}
}

// Number is a row that holds a number.
type Number int64

// Pack implements packed.Row.
func (n *Number) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, n)
}

// AddNumber adds n to a Number and returns the sum. A missing row counts as 0.
func AddNumber(o Owner, row []byte, n Number) (sum Number) {
	sum, _ = Load[Number](o, row)
	sum += n
	PutValue(o, row, &sum)
	return sum
}

// Validate returns a *schemas.BadRecordError unless the input event of the current record is valid and has the record's key;
// see schemas.ValidateRecord.
func Validate(tx *Tx, e schemas.Input, verbs schemas.Verbs) error {
	return schemas.ValidateRecord(e, tx.Key(), schemas.MicrosOf(tx.Time()), verbs)
}

// Send encodes rec and emits it to the stream's topic under key. A record that cannot be encoded fails the transaction.
func Send[T any](tx *Tx, s topics.Stream[T], key string, rec *T) {
	tx.Emit(s.Name, key, encoded(tx, s, rec))
}

// SendTo encodes rec and emits it to one partition of the stream's topic. The key does not determine the partition.
func SendTo[T any](tx *Tx, s topics.Stream[T], partition int32, key string, rec *T) {
	tx.EmitTo(s.Name, partition, key, encoded(tx, s, rec))
}

// Record reads a row that holds a record of s, or nil if there is none. A row that cannot be read or decoded fails the transaction,
// and counts as missing.
func Record[T any](o Owner, row []byte, s topics.Stream[T]) *T {
	value := o.Load(row)
	if value == nil {
		return nil
	}
	rec, err := s.Decode(value)
	if err != nil {
		o.Fail(fmt.Errorf("read a record of %s of %q: %w", s.Name, o.name, Unreadable(row, err)))
		return nil
	}
	return rec
}

// PutRecord encodes rec and writes it as a row.
func PutRecord[T any](o Owner, row []byte, s topics.Stream[T], rec *T) {
	o.Put(row, encoded(o.tx, s, rec))
}

// PutAndSend writes rec as a row, like PutRecord, and emits the same bytes, like Send.
func PutAndSend[T any](o Owner, row []byte, s topics.Stream[T], key string, rec *T) {
	value := encoded(o.tx, s, rec)
	o.Put(row, value)
	o.tx.Emit(s.Name, key, value)
}

// PutAndSendLatest is PutAndSend for a record that is the state of the row: if a transaction contains several for one row, it sends
// only the last one.
func PutAndSendLatest[T any](o Owner, row []byte, s topics.Stream[T], key string, rec *T) {
	value := encoded(o.tx, s, rec)
	o.Put(row, value)
	o.tx.emitLatest(s.Name, key, value)
}

func encoded[T any](tx *Tx, s topics.Stream[T], rec *T) []byte {
	value, err := s.Encode(rec)
	if err != nil {
		tx.Fail(fmt.Errorf("encode %s: %w", s.Name, err))
	}
	return value
}

// Unreadable returns an error for a row that cannot be decoded. It is not a *schemas.BadRecordError, because the input
// record is not the cause and must not go to the dead-letter topic.
func Unreadable(row []byte, err error) error {
	return fmt.Errorf("decode row %q: %v", row, err)
}
