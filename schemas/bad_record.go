package schemas

import "fmt"

// BadRecordError is a record that can never be worked off as it is: it goes to the dead letters.
type BadRecordError struct{ Reason string }

func (e *BadRecordError) Error() string { return e.Reason }

// Bad returns a *BadRecordError with the reason.
func Bad(reason string) error { return &BadRecordError{Reason: reason} }

func badf(format string, args ...any) error { return Bad(fmt.Sprintf(format, args...)) }
