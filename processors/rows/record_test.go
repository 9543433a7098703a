package rows

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	streams, err := topics.Open(t.Context(), oneSchema{})
	must.OK(t, err)
	s := streams.UsersDeleted
	s.Name = "out"
	b, done := newBench(t, group())
	defer done()
	want := schemas.DeletedUser{User: "user:1", Time: 7}
	err = b.callAs("k", func(tx *Tx) error {
		return errors.Join(
			PutRecord(tx.Own(), []byte("put"), s, &want),
			PutAndSend(tx.Own(), []byte("sent"), s, "other", &want),
			tx.Own().Put([]byte("damaged"), []byte("no record")))
	})
	must.OK(t, err)
	sent := b.pending.emits
	if len(sent) != 1 || string(b.pending.at(sent[0].key)) != "other" {
		t.Fatalf("%d records are sent, want one with the key other", len(sent))
	}
	err = b.callAs("k", func(tx *Tx) error {
		value, err := tx.Own().Get([]byte("sent"))
		if diff := cmp.Diff(b.pending.at(sent[0].value), value); err != nil || diff != "" {
			t.Errorf("%v, the row differs from the sent record:\n%s", err, diff)
		}
		for _, row := range []string{"put", "sent"} {
			got, err := Record(tx.Own(), []byte(row), s)
			if diff := cmp.Diff(&want, got); err != nil || diff != "" {
				t.Errorf("row %q: %v\n%s", row, err, diff)
			}
		}
		if got, err := Record(tx.Own(), []byte("none"), s); got != nil || err != nil {
			t.Errorf("missing row: %v, %v", got, err)
		}
		_, err = Record(tx.Own(), []byte("damaged"), s)
		return err
	})
	const wantErr = `read a record of out of "k": decode row "damaged": `
	if bad := new(schemas.BadRecordError); err == nil || errors.As(err, &bad) || !strings.HasPrefix(err.Error(), wantErr) {
		t.Errorf("a damaged row: %v, want an error with %s… that is not a BadRecordError", err, wantErr)
	}
}
