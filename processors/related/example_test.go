package related_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
)

// elsewhere stands for the view of a runner (rows.Runner.View) that has not been given the partition asked for.
type elsewhere struct{}

func (elsewhere) Read(_ context.Context, owner string, _ func(rows.Snapshot) error) error {
	return &rows.NotHereError{Group: topics.Related, Owner: owner, Partition: topics.Partition(owner, 16)}
}

// What goes with a pin is answered by the process that has the pin's partition. Another one says so, and package peers of
// serving asks on.
func ExampleReader() {
	reader := related.Reader{Rows: elsewhere{}}
	_, err := reader.Neighbours(context.Background(), "pin:42", 10)
	var not *rows.NotHereError
	if errors.As(err, &not) {
		fmt.Println("ask who has partition", not.Partition)
	}
	// Output: ask who has partition 6
}
