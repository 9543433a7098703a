package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/schemas"
)

// idCommand returns the commands that encode and decode sharded ids.
func (p *program) idCommand() *cobra.Command {
	return group("id", "Encode and decode sharded ids", "  smartfeed id decode 241294492511762325", &cobra.Command{
		Use: "encode SHARD TYPE LOCAL", Short: "Print the id with this shard, type and local part", Args: cobra.ExactArgs(3),
		Example: "  smartfeed id encode 3429 1 7075733",
		RunE: p.prints(func(_ *cobra.Command, args []string) (any, error) {
			id, err := makeID(args)
			return line(partsOf(id), "%s", id), usage(err)
		}),
	}, &cobra.Command{
		Use: "decode ID", Short: "Print shard, type and local part of an id", Args: cobra.ExactArgs(1),
		Example: "  smartfeed id decode pin:241294492511762325\n  smartfeed id decode 241294492511762325 -o json",
		RunE: p.prints(func(_ *cobra.Command, args []string) (any, error) {
			name := args[0]
			if _, rest, found := strings.Cut(name, ":"); found {
				name = rest
			}
			id, err := schemas.ParseShardedID(name)
			parts := partsOf(id)
			return line(parts, "shard %d type %d local %d", parts.Shard, parts.Type, parts.Local), usage(err)
		}),
	})
}

// makeID returns the id of the parts shard, type and local.
func makeID(args []string) (schemas.ShardedID, error) {
	var parts [3]uint64
	for i, bits := range []int{32, 32, 64} {
		var err error
		if parts[i], err = strconv.ParseUint(args[i], 10, bits); err != nil {
			return 0, command.Usagef("%q is not an unsigned integer of %d bits", args[i], bits)
		}
	}
	return schemas.MakeShardedID(uint32(parts[0]), uint32(parts[1]), parts[2])
}

// idParts is an id and its parts.
type idParts struct {
	ID    string `json:"id"` // a text, because it does not fit a float
	Shard uint32 `json:"shard"`
	Type  uint32 `json:"type"`
	Local uint64 `json:"local"`
}

func partsOf(id schemas.ShardedID) idParts {
	shard, typ, local := id.Split()
	return idParts{id.String(), shard, typ, local}
}
