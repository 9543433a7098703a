package cli

import (
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/internal/ops"
	"github.com/smartfeed/smartfeed/schemas"
)

func (p *program) eraseCommand() *cobra.Command {
	var unknown bool
	var operator string
	cmd := &cobra.Command{
		Use:   "erase USER",
		Short: "Erase a user with all data, and report what remains",
		Long: `Erase a user permanently: profile, affinities, edges on both sides, pins, pools, materialized feed and lists. The command
returns when no answer contains this data. It reports what remains in logs and elsewhere, and until when. A delete that is
published on the topic users has the same effect; this command also waits for it.

A user without any data is an error; --unknown erases the id anyway. Run the command again to check that nothing is left.
After --timeout the exit code is 1; the erasure continues.

A backup from before the erasure still contains the user. Keep the output of "smartfeed erase list" apart from the backups,
and pass it to "smartfeed erase reapply" after you restore a backup.`,
		Example: "  smartfeed erase user:ada\n  smartfeed erase user:ada --timeout 10m -o json",
		Args:    cobra.ExactArgs(1),
		RunE: p.prints(func(cmd *cobra.Command, args []string) (any, error) {
			user, err := schemas.ParseUserID(args[0])
			if err != nil {
				return nil, command.Usagef("user: %q: %w", args[0], err)
			}
			return p.erase(cmd, user, ops.Eraser{Unknown: unknown, Operator: command.Operator(operator)})
		}),
	}
	cmd.AddCommand(p.eraseListCommand(), p.eraseReapplyCommand())
	cmd.Flags().BoolVar(&unknown, "unknown", false, "also erase a user without any data")
	cmd.Flags().StringVar(&operator, "operator", "", operatorUsage)
	return limitTime(cmd, 2*time.Minute)
}

// erase erases a user and displays the progress.
func (p *program) erase(cmd *cobra.Command, user schemas.UserID, eraser ops.Eraser) (ops.Erased, error) {
	cfg, err := p.load(cmd)
	if err != nil {
		return ops.Erased{}, err
	}
	if eraser.Setup, err = p.setup(cmd); err != nil {
		return ops.Erased{}, err
	}
	// First, because it fails at once if the brokers are unavailable.
	remains, err := ops.Remains(cmd.Context(), eraser.Setup.Kafka, time.Now())
	if err != nil {
		return ops.Erased{}, err
	}
	if eraser.Streams, err = eraser.Setup.Streams(cmd.Context()); err != nil {
		return ops.Erased{}, err
	}
	done, err := eraser.Erase(cmd.Context(), user)
	done.Remains = slices.Concat(remains, done.Remains, cfg.Remains(time.Now()))
	for i, r := range done.Remains {
		if r.Until == nil && r.Note == "" {
			done.Remains[i].Note = "forever"
		}
	}
	return done, err
}

func (p *program) eraseListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the erased users and the times of their deletes",
		Long: `Print every user on the topic users-deleted with the time of the delete, one per line, sorted by id. "smartfeed erase reapply"
reads this list. After each erasure, save it to a file that a restore of the brokers does not replace.`,
		Example: "  smartfeed erase list > erased-users.txt",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			setup, streams, err := p.streams(cmd)
			if err != nil {
				return nil, err
			}
			list, err := ops.DeletedUsers(cmd.Context(), setup.Kafka, streams)
			return output{value: list, text: func(out io.Writer) error { return ops.WriteDeletedUsers(out, list) }}, err
		}),
	}
}

func (p *program) eraseReapplyCommand() *cobra.Command {
	return limitTime(&cobra.Command{
		Use:   "reapply [FILE]",
		Short: "Erase the users in FILE again, after a restore from a backup",
		Long: `Erase every user in FILE again, after you restored brokers or stores from a backup that contains data of these users. Each
line of FILE starts with a user id, as "smartfeed erase list" prints it; - is standard input. If a line is invalid, nothing is
erased. Without FILE, the users are those on the topic users-deleted. This is enough if you restored only feed stores or
directories, and not the brokers.

The command is idempotent. It returns when no answer contains the users. After --timeout the exit code is 1; the erasures
continue.`,
		Example: "  smartfeed erase reapply erased-users.txt\n  smartfeed erase list --kafka old:9092 | smartfeed erase reapply -",
		Args:    cobra.MaximumNArgs(1),
		RunE:    p.prints(func(cmd *cobra.Command, args []string) (any, error) { return p.eraseAgain(cmd, args) }),
	}, 10*time.Minute)
}

// eraseAgain erases the users in a file, or those of the topic users-deleted if there is no argument.
func (p *program) eraseAgain(cmd *cobra.Command, args []string) (ops.ErasedAgain, error) {
	var users []schemas.UserID
	if len(args) > 0 {
		var err error
		if users, err = readUsers(cmd, args[0]); err != nil {
			return ops.ErasedAgain{}, usage(err)
		}
	}
	setup, streams, err := p.streams(cmd)
	if err != nil {
		return ops.ErasedAgain{}, err
	}
	if len(args) == 0 {
		list, err := ops.DeletedUsers(cmd.Context(), setup.Kafka, streams)
		if err != nil {
			return ops.ErasedAgain{}, err
		}
		users = convert.All(list, func(d schemas.DeletedUser) schemas.UserID { return d.User })
	}
	return ops.Eraser{Setup: setup, Streams: streams, Operator: command.Operator("")}.Again(cmd.Context(), users)
}

// readUsers reads a list of users from a file, or from standard input for "-".
func readUsers(cmd *cobra.Command, name string) ([]schemas.UserID, error) {
	if name == "-" {
		return ops.ReadDeletedUsers(cmd.InOrStdin())
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ops.ReadDeletedUsers(file)
}
