package cli

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/reload"
	"github.com/smartfeed/smartfeed/internal/status"
	"github.com/smartfeed/smartfeed/processors"
)

// readyCommand returns the command ready, for health checks in images without another HTTP client.
func (p *program) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ready",
		Short:   "Check whether a server is ready: exit code 0 or 1",
		Example: "  smartfeed query ready --http 127.0.0.1:8080",
		RunE: p.prints(func(cmd *cobra.Command, _ []string) (any, error) {
			c, err := p.client(cmd)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			answer, err := c.Get(cmd.Context(), nil, "readyz")
			return output{value: answer, text: func(out io.Writer) error {
				_, err := out.Write(answer)
				return err
			}}, err
		}),
	}
}

func (p *program) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the state of every component of a running server",
		Example: "  smartfeed query status\n  smartfeed query status -o json",
		RunE:    requests(p, (*tables).status, get("status")),
	}
}

func (t *tables) status(s status.Status) {
	if s.Ready {
		t.row("smartfeed " + s.Version + " is ready")
	} else {
		t.row("smartfeed " + s.Version + " is not ready: " + strings.Join(s.Missing, "; "))
	}
	for _, u := range s.Unavailable {
		t.row("without " + u.Source + ": " + u.Reason)
	}
	t.reloads("", s.Reloads)
	for _, other := range s.Processes[min(1, len(s.Processes)):] {
		t.reloads(other.Address+": ", other.Reloads)
	}
	t.line("")
	t.components(s)
	t.line("")
	t.row("GROUP", "PARTITIONS", "RECORDS", "PER SECOND", "LAG", "RESTARTS", "DEAD LETTERS")
	for _, g := range s.Groups {
		t.row(g.Group, len(g.Partitions), g.Counters.Records, strconv.FormatFloat(g.PerSecond, 'f', 1, 64), lag(g.Lag), g.Restarts,
			g.Counters.DeadLetters)
	}
}

// reloads writes the files that a process rejected, and the changed keys that need a restart.
func (t *tables) reloads(process string, all []reload.State) {
	for _, r := range all {
		if r.Error != "" {
			t.row(process + "cannot reload " + r.File + ": " + r.Error)
		}
		if len(r.NeedsRestart) > 0 {
			t.row(process + "restart to apply changes in " + r.File + ": " + strings.Join(r.NeedsRestart, ", "))
		}
	}
}

// components writes the components of the responding process, or of all processes if it returned them.
func (t *tables) components(s status.Status) {
	head := []any{"COMPONENT", "CONDITION", "SINCE", "RESTARTS", "LAST ERROR"}
	if len(s.Processes) == 0 {
		t.row(head...)
		for _, p := range s.Components {
			t.row(componentCells(p)...)
		}
		return
	}
	t.row("PROCESS", "VERSION", "STATE")
	for _, p := range s.Processes {
		state := strings.Join(p.Missing, "; ")
		if p.Ready {
			state = "ready"
		}
		t.row(p.Address, p.Version, state)
	}
	t.line("")
	t.row(slices.Insert(head, 0, any("PROCESS"))...)
	for _, p := range s.Processes {
		for _, component := range p.Components {
			t.row(slices.Insert(componentCells(component), 0, any(p.Address))...)
		}
	}
}

func componentCells(p processors.ComponentState) []any {
	return []any{p.Name, p.Condition, p.Since, p.Restarts, p.LastError}
}

// lag returns the sum over all topics.
func lag(byTopic map[string]int64) string {
	if byTopic == nil {
		return "unknown"
	}
	sum := int64(0)
	for n := range maps.Values(byTopic) {
		sum += n
	}
	return strconv.FormatInt(sum, 10)
}
