package rows

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// oneSchema is a registry in which every subject has the same id.
type oneSchema struct{}

func (oneSchema) Register(context.Context, string, string) (int, error) { return 1, nil }

func (oneSchema) SchemaByID(context.Context, int) (string, error) {
	return "", errors.New("unexpected call")
}

func TestRecord_RoundTrip(t *testing.T) {
	streams := must.Get(topics.Open(t.Context(), oneSchema{}))(t)
	s := streams.UsersDeleted
	s.Name = "out"
	b := newBench(t, group())
	want := schemas.DeletedUser{User: "user:1", Time: 7}
	must.OK(t, b.callAs("k", func(tx *Tx) error {
		PutRecord(tx.Own(), []byte("put"), s, &want)
		PutAndSend(tx.Own(), []byte("sent"), s, "other", &want)
		tx.Own().Put([]byte("damaged"), []byte("no record"))
		return nil
	}))
	sent := b.pending.emits
	if len(sent) != 1 || string(b.pending.at(sent[0].key)) != "other" {
		t.Fatalf("%d records are sent, want one with the key other", len(sent))
	}
	err := b.callAs("k", func(tx *Tx) error {
		value, err := tx.Own().Get([]byte("sent"))
		if diff := cmp.Diff(b.pending.at(sent[0].value), value); err != nil || diff != "" {
			t.Errorf("%v, the row differs from the sent record:\n%s", err, diff)
		}
		for _, row := range []string{"put", "sent"} {
			expect.NoDiff(t, Record(tx.Own(), []byte(row), s), &want, "row %q", row)
		}
		if got := Record(tx.Own(), []byte("none"), s); got != nil || tx.Err() != nil {
			t.Errorf("missing row: %v, %v", got, tx.Err())
		}
		expect.NoDiff(t, Record(tx.Own(), []byte("damaged"), s), nil, "damaged row")
		expect.NoDiff(t, tx.Own().Load([]byte("put")), nil, "a row after a failed read")
		return nil
	})
	const wantErr = `read a record of out of "k": decode row "damaged": `
	if bad := new(schemas.BadRecordError); err == nil || errors.As(err, &bad) || !strings.HasPrefix(err.Error(), wantErr) {
		t.Errorf("a damaged row: %v, want an error with %s… that is not a BadRecordError", err, wantErr)
	}
}

// one is a packed row with a number.
type one struct{ n int64 }

// Pack implements packed.Row.
func (o *one) Pack(p *packed.Packer) {
	p.Version(1)
	packed.Int(p, &o.n)
}

func TestLoad_FailsTransaction(t *testing.T) {
	b := newBench(t, group())
	must.OK(t, b.callAs("k", func(tx *Tx) error {
		PutValue(tx.Own(), []byte("good"), &one{7})
		tx.Own().Put([]byte("damaged"), []byte{99})
		return nil
	}))
	unreadable := errors.New("unreadable")
	for name, load := range map[string]func(Owner){
		"Load":     func(o Owner) { Load[one](o, []byte("damaged")) },
		"LoadEach": func(o Owner) { LoadEach(o, []byte("d"), func(string, one) {}) },
		"LoadRows": func(o Owner) { LoadRows(o, Scan{}, func(_, _ []byte) (bool, error) { return true, unreadable }) },
	} {
		err := b.callAs("k", func(tx *Tx) error {
			if row, found := Load[one](tx.Own(), []byte("good")); !found || row.n != 7 {
				t.Errorf("got %v, %v", row, found)
			}
			load(tx.Own())
			_, found := Load[one](tx.Own(), []byte("good"))
			expect.False(t, found, "a row after %s failed", name)
			expect.Equal(t, len(LoadNames(tx.Own(), nil, 0)), 0, "rows after %s failed", name)
			return nil
		})
		if bad := new(schemas.BadRecordError); err == nil || errors.As(err, &bad) {
			t.Errorf("%s of a damaged row: %v, want an error that is not a BadRecordError", name, err)
		}
	}
}
