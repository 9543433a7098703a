package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/topics"
)

// demoRate is the number of events per second of the demo: enough to watch, little to run.
const demoRate = 5

func (p *program) devCommand() *cobra.Command {
	var demo bool
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "run everything in this process, on embedded parts",
		Long: `Run broker, registry, groups, stores and HTTP server in this process, with all state below --dir. Started again on the
same directory it goes on where it stopped, also after a kill. Other programs reach the broker at --kafka and the
registry at --registry, on this machine.`,
		Example: "  smartfeed dev --demo\n  smartfeed dev --dir /var/lib/smartfeed --http 127.0.0.1:8090",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := p.load(cmd)
			if err != nil {
				return err
			}
			if err := cfg.check(Dev); err != nil {
				return err
			}
			return runProduct(cmd, cfg, everything(), func(ctx context.Context, product *product) error {
				return product.welcome(ctx, cmd.OutOrStdout(), demo)
			})
		},
	}
	cmd.Flags().BoolVar(&demo, "demo", false, "load a small made-up product and let its people act")
	return cmd
}

// welcome prints the addresses once the program is ready, and runs the demo.
func (p *product) welcome(ctx context.Context, out io.Writer, demo bool) error {
	if !p.awaitReady(ctx) {
		return nil
	}
	fmt.Fprintf(out, "smartfeed is ready\n  console   %s/\n  kafka     %s\n  registry  %s\n  state     %s\n",
		p.url(), p.kafka.Brokers[0], p.broker.RegistryURL(), p.cfg.Dir)
	if !demo {
		return nil
	}
	return p.demo(ctx, out)
}

// awaitReady reports whether the product became ready before ctx was done.
func (p *product) awaitReady(ctx context.Context) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(p.missing()) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (p *product) demo(ctx context.Context, out io.Writer) error {
	outsiders, err := p.cfg.outsiders()
	if err != nil {
		return err
	}
	setup := topics.Setup{
		Kafka: p.kafka, Registry: p.broker.RegistryURL(), Verbs: p.cfg.Verbs, Log: p.log, FeedStores: p.cfg.FeedStore.others(),
		Outsiders: outsiders,
	}
	cfg := simulate.DefaultConfig()
	cfg.Rate = demoRate
	_, err = simulate.Run(ctx, setup, cfg, simulate.Forever, func(ctx context.Context) error {
		if err := setup.Wait(ctx, schemas.MicrosOf(time.Now()), nil); err != nil {
			return err
		}
		p.invite(out)
		return nil
	})
	if ctx.Err() != nil {
		return nil // stopped
	}
	return err
}

// invite prints what to try with the demo data.
func (p *product) invite(out io.Writer) {
	user := simulate.DemoUsers(1)[0]
	fmt.Fprintf(out, `the demo product is loaded and goes on gently; try
  open %[1]s/?user=%[2]s
  curl -s '%[1]s/v1/users/%[2]s/feed?limit=5'
  curl -s '%[1]s/v1/users/%[2]s/pools?source=interest&limit=5'
  smartfeed query feature interests_24h --user %[2]s
stop with ctrl-c; what is in %[3]s stays
`, p.url(), user, p.cfg.Dir)
}

// url returns the URL of the HTTP server.
func (p *product) url() string { return p.server.Scheme() + "://" + p.server.Addr() }
