package rows

import (
	"fmt"
	"log/slog"
	"strings"
)

// gokaLog logs Goka's messages at debug level. Run returns the errors.
type gokaLog struct{ log *slog.Logger }

// Print implements goka.Logger.
func (l gokaLog) Print(args ...any) { l.Println(args...) }

// Println implements goka.Logger.
func (l gokaLog) Println(args ...any) {
	l.log.Debug("goka: " + strings.TrimSpace(fmt.Sprintln(args...)))
}

// Printf implements goka.Logger.
func (l gokaLog) Printf(format string, args ...any) {
	l.log.Debug("goka: " + fmt.Sprintf(format, args...))
}
