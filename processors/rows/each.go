package rows

import "cmp"

// Scanner reads rows of an owner. Owner, Snapshot and tables of tests implement it.
type Scanner interface {
	Scan(s Scan, visit func(row, value []byte) bool) error
}

// EachOf calls visit with the rows of a scan until it returns false or an error. EachOf returns that error, or the error of the
// scan. The arguments of visit are valid only during the call.
func EachOf(t Scanner, s Scan, visit func(row, value []byte) (more bool, err error)) error {
	var bad error
	err := t.Scan(s, func(row, value []byte) (more bool) {
		more, bad = visit(row, value)
		return more && bad == nil
	})
	return cmp.Or(err, bad)
}
