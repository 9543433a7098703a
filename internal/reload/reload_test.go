package reload

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The state after each change says which text is in effect, why the present one is rejected, and which keys need a restart.
func TestFile_ReportsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		must.OK(t, os.WriteFile(path, []byte("start"), 0o600))
		var applied []string
		var reported State
		var log bytes.Buffer
		f := New(Config{
			Contents: "contents", Path: path, Every: time.Minute, MaxBytes: 100, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Apply: func(text []byte) ([]string, error) {
				switch string(text) {
				case "invalid":
					return nil, errors.New("the reason")
				case "restart":
					applied = append(applied, string(text))
					return []string{"dir"}, nil
				}
				applied = append(applied, string(text))
				return nil, nil
			},
			Report: func(s State) { reported = s },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		if s := f.State(); s.Loaded != nil || s.Error != "" {
			t.Errorf("state at the start: %+v", s)
		}
		for _, step := range []struct {
			text    string
			want    State
			applied string // "": nothing is applied
			says    string
		}{
			{text: "invalid", want: State{Error: "the reason"}, says: "level=ERROR"},
			{text: "restart", want: State{NeedsRestart: []string{"dir"}}, applied: "restart", says: "level=WARN"},
			{text: "second", want: State{}, applied: "second", says: "level=INFO"},
			{text: "second", want: State{}},
		} {
			applied = nil
			log.Reset()
			must.OK(t, os.WriteFile(path, []byte(step.text), 0o600))
			time.Sleep(time.Minute)
			synctest.Wait()
			got := f.State()
			step.want.Contents, step.want.File, step.want.Loaded = "contents", path, got.Loaded
			if diff := cmp.Diff(step.want, got); diff != "" || !cmp.Equal(got, reported) {
				t.Errorf("%s: state (-want +got):\n%s\nreported %+v", step.text, diff, reported)
			}
			if !strings.Contains(strings.Join(applied, " "), step.applied) || step.applied == "" && len(applied) > 0 {
				t.Errorf("%s: applied %q, want %q", step.text, applied, step.applied)
			}
			if !strings.Contains(log.String(), step.says) || step.says == "" && log.Len() > 0 {
				t.Errorf("%s: logged %q, want %q", step.text, log.String(), step.says)
			}
		}
		if got := f.State().Loaded; got == nil || !got.Equal(time.Now()) && time.Since(*got) > 2*time.Minute {
			t.Errorf("loaded at %v, want the time of the last reload", got)
		}
		cancel()
		must.OK(t, <-ended)
	})
}

func TestRead_LimitsSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(path, make([]byte, 100), 0o600))
	text := must.Get(Read(path, 10))(t)
	expect.Equal(t, len(text), 11, "bytes read with a limit of 10")
}
