// Package golden compares texts and rows with recorded ones. The flag -update writes the files of texts.
package golden

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/packed"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

var update = flag.Bool("update", false, "write the golden files")

// Text fails the test if the text differs from that of the file.
func Text(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := string(must.Get(os.ReadFile(file))(t))
	expect.NoDiff(t, strings.Split(got, "\n"), strings.Split(want, "\n"), "%s", file)
}

// Row fails the test if the bytes of a row are not want, in hexadecimal, or if they decode to another row. A change of the
// bytes needs another version.
func Row[T any, R packed.Row[T]](t *testing.T, row T, want string) {
	t.Helper()
	b := packed.Encode[T, R](&row)
	expect.Equal(t, hex.EncodeToString(b), want, "encoding of %+v", row)
	got, err := packed.Decode[T, R](b)
	if all := cmp.Exporter(func(reflect.Type) bool { return true }); err != nil || !cmp.Equal(got, row, all) {
		t.Errorf("%+v decodes to %+v, %v", row, got, err)
	}
}
