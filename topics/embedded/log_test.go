package embedded

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestBrokerLog_LogsTimingOfClientsAtDebugLevel(t *testing.T) {
	for _, c := range []struct {
		level  kfake.LogLevel
		format string
		want   string // the level; "": not logged
	}{
		{kfake.LogLevelWarn, "txn: EndTxn slow pid=%d", "DEBUG"},
		{kfake.LogLevelWarn, "consumerSessionTimeout: group=%d", "DEBUG"},
		{kfake.LogLevelWarn, "OffsetCommit STALE: group=%d", "DEBUG"},
		{kfake.LogLevelWarn, "pids.log: discarding %d corrupt trailing bytes", "WARN"},
		{kfake.LogLevelError, "txn: %d", "ERROR"},
		{kfake.LogLevelInfo, "request %d", ""},
		{kfake.LogLevelDebug, "request %d", ""},
	} {
		var out strings.Builder
		l := brokerLog{slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		l.Logf(c.level, c.format, 7)
		if got := out.String(); (got == "") != (c.want == "") || !strings.Contains(got, "level="+c.want) && c.want != "" {
			t.Errorf("%q: logged %q, want level %q", c.format, got, c.want)
		}
	}
}
