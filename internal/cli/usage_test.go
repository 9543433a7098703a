package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/topicstest"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
	"github.com/smartfeed/smartfeed/topics"
	"github.com/smartfeed/smartfeed/topics/generation"
)

// A wrong command line has exit code 2, prints nothing, and every mistake is named. DIR is a valid dataset, USERS a list
// with two wrong lines, SECRET a file that does not exist.
func TestExecute_NamesEveryMistakeOfACommandLine(t *testing.T) {
	users, secret := write(t, "# erased\nuser:ada 2026-01-02T03:04:05Z\n\nada\npin:1\n"), filepath.Join(t.TempDir(), "secret")
	files := strings.NewReplacer("DIR", dataset(t), "USERS", users, "SECRET", secret)
	const token = "token --auth.secret_file SECRET "
	for line, want := range map[string][]string{
		"id":                                {"want one of the commands"},
		"id encode 65536 1 1":               {"shard 65536"},
		"id encode x 1 1":                   {`"x" is not an unsigned integer of 32 bits`},
		"id decode pin:01":                  {"01"},
		"version -o xml":                    {"want table, json, yaml"},
		"config check cook":                 {`role "cook": want one of dev`},
		"topics acls cook":                  {"one of the roles"},
		"wait --timeout 0s":                 {"--timeout: 0s: want above 0"},
		"erase pin:1":                       {`user: "pin:1"`},
		"erase reapply USERS":               {"line 4", "line 5"},
		"simulate --users 1":                {"users"},
		"simulate --for soon":               {`for: "soon"`},
		"bench --rate 0 --for 0s --users 0": {"--rate: 0", "--for: 0s", "--users: 0"},
		"import lastfm DIR --last-action yesterday":                             {`--last-action: "yesterday": want a time`},
		"import lastfm DIR --last-action 2999-01-01T00:00:00Z":                  {"more than 5m0s in the future"},
		"import lastfm DIR --last-action 2020-01-01T00:00:00Z --original-times": {"want one of them"},
		"dead-letters list --limit 0":                                           {"--limit: 0"},
		"rebuild":                                                               {"accepts 1 arg"},
		"rebuild related":                                                       {"want following, interest, all, or the id of a user"},
		"rebuild user:1 --source related":                                       {"want following or interest"},
		"rebuild all --source following":                                        {"--source: only for a user"},
		"rebuild user:1 --abort --rate 0":                                       {"--rate: 0: want above 0, at most 1000000\n--abort: only for the target all"},
		"replay":                                                                {"accepts 1 arg"},
		"replay related":                                                        {"want following, interest, all, or the id of a user"},
		"replay user:1 --rate 0 --users 0":                                      {"--rate: 0: want above 0, at most 1000000\n--users: 0"},
		"replay user:1 --abort --half-life 1s":                                  {"--half-life: 1s: want 1m to 8760h\n--abort: only for the target all"},
		"query feed pin:1":                                                      {"pin:1"},
		"query feed ada":                                                        {"ada"},
		"query get users/%zz":                                                   {"path", "%zz"},
		"query get status?%zz":                                                  {"path", "%zz"},
		"query features a --user pin:1":                                         {"pin:1"},
		"query features a --pin user:1":                                         {"user:1"},
		"query features a --pair user:1":                                        {"want USER|PIN"},
		"query features a --pair pin:1|pin:2":                                   {"pin:1"},
		"query features a":                                                      {"want names of features and a --user"},
		"query features --set a":                                                {"want names of features and a --user"},
		"query features --user user:a":                                          {"want names of features and a --user"},
		"query features a --user user:a --at yesterday":                         {`--at: "yesterday"`},
		"query get status --http ftp://server":                                  {"ftp://server"},
		"features history --rows a --out b":                                     {"want --rows, --out and --features"},
		"evaluate":                                                              {"accepts 1 arg"},
		"evaluate rows --effect 5":                                              {"effect: 5: want 0.001 to 1"},
		"evaluate rows --min-overlap 2":                                         {"min-overlap: 2"},
		"evaluate rows --policy missing":                                        {"missing: no such file"},
		token:                                                                   {"--user or --service"},
		token + "--user user:a --service b --scope feed":                        {"--user or --service"},
		token + "--user user:a --scope feed":                                    {"--scope: only for --service"},
		token + "--user ada":                                                    {"--user: "},
		token + "--auth.service_prefix= --auth.service_claim gty --auth.service_claim_value x --service user:x --scope feed": {
			"starts with auth.user_prefix",
		},
		token + "--auth.service_prefix= --service b --scope feed": {"so no token is a service's"},
		token + "--service b":               {"has no permission"},
		token + "--service b --scope all":   {`--scope: "all"`},
		token + "--user user:a --for 9999h": {"want 1s to"},
		"token --user user:a":               {"auth.secret_file: is empty"},
		token + "--user user:a --auth.jwks http://id.example/keys --auth.audience x": {"want a file or an https URL"},
		token + "--user user:a --outgoing.allowed_networks 10.0.0.1":                 {"is not a network"},
	} {
		code, out, errOut := execute(t, nil, strings.Fields("--kafka "+deaf+" "+files.Replace(line))...)
		expect.Equal(t, code, 2, "%s: exit code", line)
		expect.Equal(t, out, "", "%s: output", line)
		for _, mistake := range want {
			expect.Contains(t, errOut, mistake, "%s", line)
		}
	}
	expect.Fails(t, expect.ErrorOf(os.Stat(secret)), "secret of a rejected command")
}

func TestExecute_WarnsOnceOfKubernetesServices(t *testing.T) {
	environ := []string{"SMARTFEED_PORT=tcp://10.96.0.10:8080", "SMARTFEED_SERVICE_HOST=10.96.0.10"}
	code, _, errOut := execute(t, environ, "config", "show")
	expect.Equal(t, code, 0, "exit code with %s", errOut)
	if n := strings.Count(errOut, "level=WARN"); n != 1 || !strings.Contains(errOut, "SMARTFEED_SERVICE_HOST") {
		t.Errorf("%d warnings, want one that names the variables:\n%s", n, errOut)
	}
	p, log := &program{environ: environ}, new(bytes.Buffer)
	p.warnOfServiceLinks(slog.New(slog.NewTextHandler(log, nil)))
	p.warnOfServiceLinks(slog.New(slog.NewTextHandler(log, nil)))
	expect.Equal(t, strings.Count(log.String(), "level=WARN"), 1, "warnings of a program that loads its configuration twice")
}

func TestExecute_NamesUnknownKey(t *testing.T) {
	for _, c := range []struct {
		args, environ []string
		want          string
	}{
		{[]string{"config", "check", "--feed.store=1s"}, nil, "unknown flag: --feed.store"},
		{[]string{"config", "check"}, []string{"SMARTFEED_FEED_STORE=1s"}, "SMARTFEED_FEED_STORE: unknown variable"},
	} {
		code, _, errOut := execute(t, c.environ, c.args...)
		expect.Equal(t, code, 2, "%v %v: exit code", c.args, c.environ)
		expect.Contains(t, errOut, c.want, "%v %v", c.args, c.environ)
	}
}

// The record of a generation decides which command resumes or aborts it.
func TestGenerationCommands_RespectWhatIsBeingBuilt(t *testing.T) {
	t.Parallel()
	setup := topicstest.Start(t, 0).Setup() // no groups run, and generation 2 has no topics: a command that resumes it waits and ends
	client := must.Get(setup.Kafka.Client())(t)
	defer client.Close()
	log := must.Get(topics.NewLog(setup.Kafka))(t)
	defer log.Close()
	watch := topics.GenerationWatch{Log: log}
	const rebuilding, replaying = "rebuild all", "replay following --half-life 48h"
	named := strconv.Quote("smartfeed " + replaying)
	for name, c := range map[string]struct {
		command     string
		cuttingOver bool
		args, want  string
	}{
		"another replay":                 {replaying, false, "replay all", named + " resumes it"},
		"a rebuild over a replay":        {replaying, false, rebuilding, named + " resumes it"},
		"a rebuild of another source":    {rebuilding, false, "rebuild interest", `"smartfeed rebuild all" resumes it`},
		"a replay over a rebuild":        {rebuilding, false, "replay all --half-life 24h", `"smartfeed rebuild all" resumes it`},
		"another half-life":              {replaying, false, strings.Replace(replaying, "48h", "24h", 1), "--half-life 48h"},
		"without the half-life":          {replaying, false, "replay following", `"smartfeed rebuild all --abort" aborts it`},
		"the same rebuild":               {rebuilding, false, rebuilding, "catch up"},
		"another replay at the cut-over": {"replay all", true, "replay interest", `the cut-over has started: "smartfeed replay all" finishes it`},
		"the same":                       {replaying, false, "replay following --half-life 2880m", "catch up"},
		"abort at the cut-over":          {replaying, true, "rebuild all --abort", named + " finishes it"},
	} {
		t.Run(name, func(t *testing.T) {
			g := generation.Record{Group: topics.Pools, Active: 1, Building: 2, Command: c.command, CuttingOver: c.cuttingOver}
			must.OK(t, topics.SetGeneration(t.Context(), client, g))
			args := append(strings.Fields(c.args), "--timeout", "20s", "--kafka", setup.Kafka.Brokers[0], "--registry", setup.Registry)
			expect.Error(t, expect.ErrorOf(run(t, args...)), c.want, "%q", args)
			must.OK(t, watch.Refresh(t.Context()))
			expect.Equal(t, watch.Of(topics.Pools), g, "generation")
		})
	}
}

func TestImportLastfm_PublishesNothingOfInvalidFiles(t *testing.T) {
	dir := dataset(t)
	must.OK(t, os.WriteFile(filepath.Join(dir, "user_friends.dat"), []byte("userID\tfriendID\n1\t\n"), 0o600))
	_, _, err := smartfeed(t, "", "import", "lastfm", dir, "--kafka", deaf)
	want := "read " + dir + `: nothing was published: user_friends.dat:2: friendID "": not a number from 0 to 2147483647`
	expect.Equal(t, fmt.Sprint(err), want, "error")
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{"forever": simulate.Forever, "0": 0, "90s": 90 * time.Second} {
		expect.Equal(t, must.Get(parseSpan(text))(t), want, "%s", text)
	}
	expect.Fails(t, expect.ErrorOf(parseSpan("-1s")), "negative duration")
}
