package related

import (
	"errors"
	"testing"

	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
)

// oneRow is a table that has only the row rowAll.
type oneRow []byte

func (r oneRow) Get(name []byte) ([]byte, error) {
	if len(name) != 1 || name[0] != rowAll {
		return nil, nil
	}
	return r, nil
}

func (oneRow) Scan(rows.Scan, func(row, value []byte) bool) error { return nil }

func TestTheRowOfAllNeighbours(t *testing.T) {
	w := whole{strength: 2.5, kept: 7}
	tests := map[string]struct {
		row  oneRow
		want whole
		err  error
	}{
		"as written":            {w.encode(), w, nil},
		"none":                  {nil, whole{strength: decay.None()}, nil},
		"from before the count": {w.encode()[:8], whole{2.5, uncounted}, nil},
		"cut":                   {w.encode()[:11], whole{}, errTorn},
	}
	for name, tt := range tests {
		if got, err := readWhole(tt.row); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: got %v, %v, want %v, %v", name, got, err, tt.want, tt.err)
		}
	}
}
