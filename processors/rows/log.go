package rows

import (
	"fmt"
	"log/slog"
	"strings"
)

// gokaLog logs Goka's lines at debug level: the error that Run returns has what matters.
type gokaLog struct{ log *slog.Logger }

// Print is part of goka.Logger.
func (l gokaLog) Print(args ...any) { l.Println(args...) }

// Println is part of goka.Logger.
func (l gokaLog) Println(args ...any) {
	l.log.Debug("goka: " + strings.TrimSpace(fmt.Sprintln(args...)))
}

// Printf is part of goka.Logger.
func (l gokaLog) Printf(format string, args ...any) {
	l.log.Debug("goka: " + fmt.Sprintf(format, args...))
}
