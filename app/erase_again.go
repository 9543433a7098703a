package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

func (p *program) eraseListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "print every erased user and the time of the delete, one per line",
		Long: `Print every user on the topic users-deleted, with the time of the delete, one per line, sorted by id. "smartfeed erase again"
reads this. Write it to a file that a restore of the brokers does not replace, whenever users were erased.`,
		Args:    noArguments,
		Example: "  smartfeed erase list > erased-users.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return err
			}
			list, err := ops.DeletedUsers(cmd.Context(), setup.Kafka, streams)
			if err != nil {
				return err
			}
			return ops.WriteDeletedUsers(cmd.OutOrStdout(), list)
		},
	}
}

func (p *program) eraseAgainCommand() *cobra.Command {
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "again [FILE]",
		Short: "erase everyone in FILE again, after brokers or stores were restored from a backup",
		Long: `Erase every user in FILE again: what a restored backup has of them is deleted as it was the first time. Each line of FILE
begins with a user id, as "smartfeed erase list" prints it; - is standard input. If a line is wrong, nothing is erased.
Without FILE the list is the topic users-deleted: that is enough if only feed stores or directories were restored, and not
the brokers.

You can run it any number of times; for users of whom nothing was restored it changes nothing. It returns when all of it has
had its effect. After --timeout the exit code is 1; the erasures go on.`,
		Example: "  smartfeed erase again erased-users.txt\n  smartfeed erase list --kafka old:9092 | smartfeed erase again -",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return command.Usagef("--timeout %s: must be positive", timeout)
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("not done within %s", timeout))
			defer cancel()
			done, err := p.eraseAgain(ctx, cmd, args)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "give up waiting after")
	return cmd
}

// streams returns what a command needs to read and write topics.
func (p *program) streams(cmd *cobra.Command) (topics.Setup, *topics.Streams, error) {
	setup, err := p.setup(cmd)
	if err != nil {
		return setup, nil, err
	}
	streams, err := setup.Streams(cmd.Context())
	return setup, streams, err
}

// eraseAgain erases the users in a file, or those of the topic users-deleted if there is no argument.
func (p *program) eraseAgain(ctx context.Context, cmd *cobra.Command, args []string) (ops.ErasedAgain, error) {
	var users []schemas.UserID
	if len(args) > 0 {
		var err error
		if users, err = readUsers(cmd, args[0]); err != nil {
			return ops.ErasedAgain{}, &command.UsageError{Err: err}
		}
	}
	setup, streams, err := p.streams(cmd)
	if err != nil {
		return ops.ErasedAgain{}, err
	}
	if len(args) == 0 {
		list, err := ops.DeletedUsers(ctx, setup.Kafka, streams)
		if err != nil {
			return ops.ErasedAgain{}, err
		}
		for _, d := range list {
			users = append(users, d.User)
		}
	}
	task := setup.Start("erase again", -1)
	defer task.Done()
	eraser := ops.Eraser{Kafka: setup.Kafka, Streams: streams, Readers: setup.Readers(), Operator: command.Operator(""), Say: task.Say}
	return eraser.Again(ctx, users)
}

// readUsers reads a list of users from a file, or from standard input for "-".
func readUsers(cmd *cobra.Command, name string) ([]schemas.UserID, error) {
	var in io.Reader = cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return ops.ReadDeletedUsers(in)
}
