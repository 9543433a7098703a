package schemas

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// filed returns records, and a file with these records in blocks of two.
func filed(t *testing.T) ([]*FiledFeatures, []byte) {
	t.Helper()
	var file bytes.Buffer
	w, err := NewFileWriter(&file)
	must.OK(t, err)
	number := 2.5
	var records []*FiledFeatures
	for i := range 6 {
		rec := &FiledFeatures{
			LoggedFeatures: LoggedFeatures{Answer: "a", Entity: fmt.Sprint("user:", i), AsOf: 5, Logged: 6, Share: 0.5, Values: []FeatureValue{
				{Feature: "n", Number: &number}, {Feature: "none", Reasons: []string{"empty"}},
				{Feature: "g", Groups: map[string]float64{"x": 1}}, {Feature: "v", Vector: []float64{1, 2}},
				{Feature: "l", Last: []LoggedAction{{"pin:1", "save", 7}}}, {Feature: "t", Top: []LoggedCount{{"x", 3}}},
			}},
			Partition: 3, Offset: int64(10 * i),
		}
		records = append(records, rec)
		must.OK(t, w.Write(rec))
		if i%2 == 1 {
			must.OK(t, w.Flush())
		}
	}
	return records, file.Bytes()
}

func read(t *testing.T, text []byte) []*FiledFeatures {
	t.Helper()
	var got []*FiledFeatures
	err := ReadFiled(bytes.NewReader(text), func(rec *FiledFeatures) error { got = append(got, rec); return nil })
	must.OK(t, err)
	return got
}

func TestFileWriter_RoundTrip(t *testing.T) {
	want, file := filed(t)
	if diff := cmp.Diff(want, read(t, file), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// After a kill of the writer at any byte, the complete blocks remain and can be read.
func TestRepairFile_TruncatesAtLastCompleteBlock(t *testing.T) {
	want, whole := filed(t)
	path := filepath.Join(t.TempDir(), "f.avro")
	last := 0
	for n := range len(whole) + 1 {
		must.OK(t, os.WriteFile(path, whole[:n], 0o600))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must.OK(t, err)
		records, err := RepairFile(f)
		must.OK(t, err)
		must.OK(t, f.Close())
		if records%2 != 0 || int(records) < last {
			t.Fatalf("%d of %d bytes: %d records after %d", n, len(whole), records, last)
		}
		last = int(records)
		left, err := os.ReadFile(path)
		must.OK(t, err)
		if records == 0 {
			continue
		}
		if diff := cmp.Diff(want[:records], read(t, left), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%d of %d bytes (-want +got):\n%s", n, len(whole), diff)
		}
	}
	if last != len(want) {
		t.Errorf("the whole file has %d records, want %d", last, len(want))
	}
}

func FuzzRepairFile(f *testing.F) {
	f.Add([]byte("Obj\x01\x00"))
	f.Add([]byte("Obj\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if records, end := completeBlocks(text); end > len(text) || records < 0 && end == 0 {
			t.Errorf("%d records in %d of %d bytes", records, end, len(text))
		}
	})
}
