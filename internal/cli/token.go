package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/auth"
)

// maxTokenLifetime is the longest lifetime of a token of the command token.
const maxTokenLifetime = 90 * 24 * time.Hour

func (p *program) tokenCommand() *cobra.Command {
	grant := auth.Grant{}
	var user string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Print a token for development and tests",
		Long: `Print a bearer token that is signed with the secret in --auth.secret_file. If the file does not exist, the command creates it.
The token of a user grants access to that user's feed. The token of a service has the permissions of its scopes:
` + strings.Join([]string{auth.Feed, auth.Features, auth.Events, auth.EventsOf("STREAM"), auth.DeleteUsers, auth.Operate, auth.View}, ", ") + `.
Anyone who has the secret can create any token. To trust several issuers separately, use keys (--auth.jwks).`,
		Example: "  smartfeed token --auth.secret_file token.secret --user user:ada\n  smartfeed token --auth.secret_file token.secret --service dashboard --scope operate,feed --for 8h",
		RunE: p.prints(with(p.load, func(cmd *cobra.Command, _ []string, cfg app.Config) (any, error) {
			grant.User = schemas.UserID(user)
			if err := checkGrant(grant, cfg.Auth); err != nil {
				return nil, usage(err)
			}
			return mint(cmd, cfg.Auth, grant)
		})),
	}
	cmd.Flags().StringVar(&user, "user", "", "user of the token, as user:NAME")
	cmd.Flags().StringVar(&grant.Service, "service", "", "service of the token, with or without auth.service_prefix")
	cmd.Flags().StringSliceVar(&grant.Scopes, "scope", nil, "scopes of the service")
	cmd.Flags().DurationVar(&grant.For, "for", time.Hour, "lifetime, 1s to "+maxTokenLifetime.String())
	complete(cmd, "scope", auth.Scopes()...)
	return cmd
}

// checkGrant reports every error in the flags of token.
func checkGrant(g auth.Grant, cfg auth.Config) error {
	var problems settings.Problems
	problems.Want((g.User == "") != (g.Service == ""), "want --user or --service")
	if g.User != "" {
		_, err := schemas.ParseUserID(string(g.User))
		problems.Want(err == nil, "--user: %w", err)
	}
	if g.Service != "" && cfg.ServicePrefix == "" {
		problems.Want(cfg.ServiceClaim != "", "--service: auth.service_prefix and auth.service_claim are empty, so no token is a service's")
		reserved := cfg.UserPrefix != "" && strings.HasPrefix(g.Service, cfg.UserPrefix)
		problems.Want(!reserved, "--service: %q starts with auth.user_prefix: the token would be rejected", g.Service)
	}
	problems.Want(g.User == "" || len(g.Scopes) == 0, "--scope: only for --service: a user's token grants access to the user's own data")
	problems.Want(g.Service == "" || len(g.Scopes) > 0, "--scope: a service without scopes has no permission")
	for _, scope := range g.Scopes {
		problems.Want(slices.Contains(auth.Scopes(), scope), "--scope: %q: want one of %s", scope, strings.Join(auth.Scopes(), ", "))
	}
	problems.Want(g.For >= time.Second && g.For <= maxTokenLifetime, "--for: %s: want 1s to %s", g.For, maxTokenLifetime)
	return problems.Err()
}

// mint returns a token for the grant. It creates the secret file if it does not exist.
func mint(cmd *cobra.Command, cfg auth.Config, g auth.Grant) (any, error) {
	if cfg.SecretFile == "" {
		return nil, command.Usagef("auth.secret_file: is empty: want the file with the secret of the server")
	}
	secret, created, err := auth.MakeSecret(cfg.SecretFile)
	if err != nil {
		return nil, err
	}
	if created {
		fmt.Fprintf(cmd.ErrOrStderr(), "created the secret %s: start the server with --auth.secret_file %[1]s\n", cfg.SecretFile)
	}
	now := time.Now()
	token, err := auth.Mint(cfg, secret, g, now)
	return line(struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires"`
	}{token, now.Add(g.For).UTC().Truncate(time.Second)}, "%s", token), err
}
