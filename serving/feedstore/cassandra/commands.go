package cassandra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Setup is the configuration that the commands need.
type Setup struct {
	Config           Config
	Primary, Standby Cluster // without hosts: none
}

// errNone is returned when no cluster is configured.
var errNone = errors.New("feed_store.cassandra.primary.hosts is empty: the embedded feed store needs neither apply nor verify")

// Commands returns the commands apply and verify. setup is called when one of them runs.
func Commands(setup func(*cobra.Command) (Setup, error)) []*cobra.Command {
	var asJSON bool
	commands := []*cobra.Command{{
		Use: "apply", Short: "make keyspace and tables, set options that differ", Args: cobra.NoArgs,
		Example: "  smartfeed feedstore apply --feed_store.cassandra.primary.hosts cassandra-a:9042",
		Long: `Make the keyspace and the tables on the primary and, if there is one, on the standby, and set options that differ. What
cannot be changed in place is reported, and nothing is changed on that cluster then. Run it again at any time: what is
there stays.`,
		RunE: each(setup, func(cmd *cobra.Command, name string, cfg Config, at Cluster) error {
			done, err := Apply(cmd.Context(), cfg, at)
			return errors.Join(err, newReport(name, done, err).print(cmd.OutOrStdout(), asJSON))
		}),
	}, {
		Use: "verify", Short: "report how keyspace and tables differ from what apply would make", Args: cobra.NoArgs,
		Example: "  smartfeed feedstore verify --feed_store.cassandra.primary.hosts cassandra-a:9042",
		RunE: each(setup, func(cmd *cobra.Command, name string, cfg Config, at Cluster) error {
			err := Verify(cmd.Context(), cfg, at)
			return errors.Join(err, newReport(name, nil, err).print(cmd.OutOrStdout(), asJSON))
		}),
	}}
	for _, cmd := range commands {
		cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line for each cluster")
	}
	return commands
}

// report is the result of a command for one cluster.
type report struct {
	Cluster  string   `json:"cluster"` // primary or standby
	OK       bool     `json:"ok"`      // the cluster matches the configuration
	Done     []string `json:"done"`
	Problems []string `json:"problems"`
}

func newReport(cluster string, done []string, err error) report {
	r := report{Cluster: cluster, OK: err == nil, Done: append([]string{}, done...), Problems: []string{}}
	if err != nil {
		r.Problems = strings.Split(err.Error(), "\n")
	}
	return r
}

// print writes the report. In plain text it omits the problems, because the returned error contains them.
func (r report) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(r)
	}
	for _, what := range r.Done {
		fmt.Fprintf(out, "%s: %s: done\n", r.Cluster, what)
	}
	if r.OK {
		fmt.Fprintf(out, "%s: as it should be\n", r.Cluster)
	}
	return nil
}

// each calls do for each cluster, even if it fails for one.
func each(setup func(*cobra.Command) (Setup, error), do func(cmd *cobra.Command, name string, cfg Config, at Cluster) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		s, err := setup(cmd)
		if err != nil {
			return err
		}
		if len(s.Primary.Hosts) == 0 {
			return errNone
		}
		problems := []error{named("primary", do(cmd, "primary", s.Config, s.Primary))}
		if len(s.Standby.Hosts) > 0 && !errors.Is(cmd.Context().Err(), context.Canceled) {
			problems = append(problems, named("standby", do(cmd, "standby", s.Config, s.Standby)))
		}
		return errors.Join(problems...)
	}
}

// named prefixes each line of an error with the cluster's name.
func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return errors.New(name + ": " + strings.ReplaceAll(err.Error(), "\n", "\n"+name+": "))
}
