package related_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
)

// elsewhere replaces the view of a runner (rows.Runner.View) that does not own the requested partition.
type elsewhere struct{}

func (elsewhere) Read(_ context.Context, owner string, _ func(rows.Snapshot) error) error {
	return &rows.NotHereError{Group: topics.Related, Owner: owner, Partition: topics.Partition(owner, 16)}
}

// The process that owns a pin's partition returns the pin's neighbors. Another process returns an error with the partition,
// and package peers of serving forwards the request.
func ExampleReader() {
	reader := related.Reader{Rows: elsewhere{}}
	_, err := reader.Neighbours(context.Background(), "pin:42", 10)
	var not *rows.NotHereError
	if errors.As(err, &not) {
		fmt.Println("ask who has partition", not.Partition)
	}
	// Output: ask who has partition 6
}
