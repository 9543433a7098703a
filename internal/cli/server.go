package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/serving/client"
)

// client returns a client of the running server. The caller must close it.
func (p *program) client(cmd *cobra.Command) (*client.Client, error) {
	cfg, err := p.server(cmd)
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg)
	if wrong := new(client.AddressError); errors.As(err, &wrong) {
		return nil, usage(err)
	}
	return c, err
}

// request is a request to a running server.
type request struct {
	path  []string   // below /v1
	query url.Values // of a GET
	body  any        // nil: GET; otherwise POST
}

// requests returns a command's function that sends a request and prints the answer: the JSON unchanged, or the T as a table.
func requests[T any](p *program, table func(*tables, T), of func(cmd *cobra.Command, args []string) (request, error)) commandFunc {
	return func(cmd *cobra.Command, args []string) error {
		r, err := of(cmd, args)
		if err != nil {
			return err
		}
		c, err := p.client(cmd)
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = send(p, cmd, c, r, table)
		return err
	}
}

// send sends a request, and prints and returns the answer.
func send[T any](p *program, cmd *cobra.Command, c *client.Client, r request, table func(*tables, T)) (v T, err error) {
	var answer json.RawMessage
	path := append([]string{"v1"}, r.path...)
	if r.body == nil {
		answer, err = c.Get(cmd.Context(), r.query, path...)
	} else {
		answer, err = c.Post(cmd.Context(), r.body, path...)
	}
	if err != nil {
		return v, explained(err)
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return v, fmt.Errorf("read answer: %w", err)
	}
	return v, p.print(cmd.OutOrStdout(), output{value: answer, text: func(out io.Writer) error {
		t := newTables(out)
		table(t, v)
		return t.flush()
	}})
}

// explained returns an error with each problem of a rejected request on its own line, if there are several.
func explained(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || len(refused.Errors) < 2 {
		return err
	}
	problems := []error{err}
	for _, one := range refused.Errors {
		problems = append(problems, errors.New("  "+printed(one)))
	}
	return errors.Join(problems...)
}
