package schemas

import (
	"fmt"
	"strings"
)

// maxReasonBytes bounds a reason: it travels in a dead letter, and may quote what came from outside.
const maxReasonBytes = 4096

// BadRecordError is a record that can never be worked off as it is: it goes to the dead letters.
type BadRecordError struct{ Reason string }

// Error returns the reason.
func (e *BadRecordError) Error() string { return e.Reason }

// Bad returns a *BadRecordError with the reason, cut at 4 KiB and to what is UTF-8.
func Bad(reason string) error {
	if len(reason) > maxReasonBytes {
		reason = reason[:maxReasonBytes] + "…"
	}
	return &BadRecordError{Reason: strings.ToValidUTF8(reason, "")}
}

func badf(format string, args ...any) error { return Bad(fmt.Sprintf(format, args...)) }
