package schemas

import (
	"fmt"
	"strings"
)

// maxReasonBytes bounds a reason, which is part of a dead letter and may quote untrusted input.
const maxReasonBytes = 4096

// BadRecordError is returned for a record that can never be processed as it is. The record goes to the dead-letter topic.
type BadRecordError struct{ Reason string }

// Error returns the reason.
func (e *BadRecordError) Error() string { return e.Reason }

// Bad returns a *BadRecordError with the reason, truncated to 4 KiB and to valid UTF-8.
func Bad(reason string) error {
	if len(reason) > maxReasonBytes {
		reason = reason[:maxReasonBytes] + "…"
	}
	return &BadRecordError{Reason: strings.ToValidUTF8(reason, "")}
}

func badf(format string, args ...any) error { return Bad(fmt.Sprintf(format, args...)) }
