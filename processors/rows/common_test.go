package rows

import (
	"errors"
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

func TestCommonOwner_HashesToItsPartition(t *testing.T) {
	for _, partitions := range []int32{1, 4, 64} {
		for p := range partitions {
			name := CommonOwner(p, partitions)
			if got := topics.Partition(name, partitions); got != p || checkOwner(name) != nil {
				t.Errorf("the owner %q of partition %d of %d is in %d: %v", name, p, partitions, got, checkOwner(name))
			}
		}
	}
}

// The next callback of any owner reads the common rows that a callback wrote. Writes of a failed callback are not
// visible, and a finished Tx has no common rows.
func TestCommon_IsSharedByAllOwners(t *testing.T) {
	b := newBench(t, group())
	owners := ownersOfPartition0(2)
	put := func(value string) func(*Tx) error {
		return writing(func(tx *Tx) { tx.Common().Put([]byte("r"), []byte(value)) })
	}
	refused := errors.New("refused")
	var over Tx
	must.OK(t, b.callAs(owners[0], put("of the first")))
	must.OK(t, b.callAs(owners[0], writing(func(tx *Tx) { tx.Own().Put([]byte("r"), []byte("own")) })))
	expect.Is(t, b.callAs(owners[1], func(tx *Tx) error { _ = put("undone")(tx); return refused }), refused, "a callback that fails")
	for name, call := range map[string]func(func(*Tx) error) error{
		"keyed": func(f func(*Tx) error) error { return b.callAs(owners[1], f) }, "batched": b.call,
	} {
		must.OK(t, call(func(tx *Tx) error {
			over = *tx
			value, err := tx.Common().Get([]byte("r"))
			expect.Equal(t, string(value), "of the first", "%s: the value that the first owner's callback wrote", name)
			return err
		}))
	}
	over.s = nil
	_ = put("late")(&over)
	expect.Is(t, over.Err(), errUsedAfter, "used after its callback")
}
