package related_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/smartfeed/smartfeed/processors/related"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/topics"
)

// notOwner is a view (rows.Runner.View) of a process that does not own the requested partition.
type notOwner struct{}

func (notOwner) Read(_ context.Context, owner string, _ func(rows.Snapshot) error) error {
	return &rows.NotOwnerError{Group: topics.Related, Owner: owner, Partition: topics.Partition(owner, 16)}
}

// The process that owns a pin's partition returns the pin's neighbors. Another process returns an error with the partition,
// and serving/peers forwards the request.
func ExampleReader() {
	reader := related.Reader{Rows: notOwner{}}
	_, err := reader.Neighbors(context.Background(), "pin:42", 10)
	var notOwner *rows.NotOwnerError
	if errors.As(err, &notOwner) {
		fmt.Println("forward to the owner of partition", notOwner.Partition)
	}
	// Output: forward to the owner of partition 6
}
