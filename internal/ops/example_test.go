package ops_test

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/topics"
)

// A program that includes the commands. This one needs no brokers.
func ExampleCommands() {
	root := &cobra.Command{Use: "feedctl"}
	root.AddCommand(ops.Commands(func(*cobra.Command) (topics.Setup, error) {
		return topics.Setup{Kafka: topics.Kafka{Brokers: []string{"kafka-1:9092"}, Partitions: 16}}, nil
	})...)
	root.SetOut(os.Stdout)
	root.SetArgs([]string{"topics", "acls", topics.RoleProduce})
	if err := root.Execute(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Write on topic users
	// Write on topic follows
	// Write on topic pins
	// Write on topic actions
	// Write on topic candidates
}
