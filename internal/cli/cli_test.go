package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/smartfeed/smartfeed/internal/command"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/lastfmtest"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/topics"
)

// commands returns all commands, except cobra's own help.
func commands() []*cobra.Command {
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && !sub.Hidden {
				all = append(all, sub)
				walk(sub)
			}
		}
	}
	root := (&program{}).root()
	addCompletion(root)
	walk(root)
	return all
}

// words returns the command line of a command, without the program's name.
func words(c *cobra.Command) []string { return strings.Fields(c.CommandPath())[1:] }

func isShell(c *cobra.Command) bool { return c.HasParent() && c.Parent().Name() == "completion" }

// The help of each command has an example, and each example is a valid command line.
func TestCommands_HaveValidExamples(t *testing.T) {
	for _, c := range commands() {
		code, out, _ := execute(t, nil, append(words(c), "--help")...)
		expect.Equal(t, code, 0, "%s --help: exit code", c.CommandPath())
		if isShell(c) {
			continue // cobra's own text
		}
		expect.Contains(t, out, "\nExamples:\n", "%s --help", c.CommandPath())
		for line := range strings.Lines(c.Example) {
			expect.Error(t, understood(line), "", "%s: %q", c.CommandPath(), strings.TrimSpace(line))
			expect.Contains(t, line, c.CommandPath(), "an example of %s", c.CommandPath())
		}
	}
}

// understood parses the program's command lines in a line of shell, and checks flags and arguments.
func understood(line string) error {
	line = regexp.MustCompile(`'[^']*'`).ReplaceAllStringFunc(line, func(quoted string) string { // one argument
		return strings.ReplaceAll(strings.Trim(quoted, "'"), " ", "_")
	})
	for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("&|()<>", r) }) {
		_, args, found := strings.Cut(part, "smartfeed ")
		if !found {
			continue
		}
		root := (&program{}).root()
		addCompletion(root)
		cmd, rest, err := root.Find(strings.Fields(args))
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if errors.Is(err, pflag.ErrHelp) {
			continue
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// An unknown flag, a surplus argument, and a group without a subcommand give exit code 2 and name the command that
// explains more.
func TestCommands_RejectWrongUsage(t *testing.T) {
	many := slices.Repeat([]string{"surplus"}, 9)
	for _, c := range commands() {
		lines := [][]string{append(words(c), "--no-such-flag")}
		if !slices.Contains([]string{"publish", "feature"}, c.Name()) { // these take any number
			lines = append(lines, append(words(c), many...))
		}
		if c.HasSubCommands() {
			lines = append(lines, words(c))
		}
		for _, line := range lines {
			code, out, errOut := execute(t, nil, line...)
			if code != 2 || out != "" || !strings.Contains(errOut, `see "`) {
				t.Errorf("%q: exit code %d, printed %.200q, %.200q", line, code, out, errOut)
			}
		}
	}
}

// deaf is an address at which no server listens.
const deaf = "127.0.0.1:1"

// A command that needs an unavailable server fails with exit code 1 and names the server.
func TestCommands_FailWithoutServers(t *testing.T) {
	away := []string{"--kafka", deaf, "--registry", deaf, "--http", deaf, "--pinot.controller", deaf, "--partitions", "4",
		"--feed_store.cassandra.primary.hosts", deaf, "--dir", t.TempDir()}
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	must.OK(t, os.WriteFile(rows, []byte(`{"user":"user:ada","time":"2026-01-02T03:04:05Z"}`), 0o600))
	for _, args := range [][]string{
		{"topics", "plan"}, {"topics", "apply"}, {"topics", "verify"}, {"publish"}, {"wait", "--timeout", "200ms"},
		{"dead-letters", "list"}, {"dead-letters", "retry"},
		{"simulate", "--for", "0"}, {"import", "lastfm", dataset(t)}, {"import", "lastfm", t.TempDir()},
		{"erase", "user:ada"}, {"rebuild", "user:ada"}, {"replay", "user:ada"}, {"features", "verify"}, {"features", "history", "--rows", rows, "--out", rows + ".out", "--features", "interests_24h"}, {"doctor", "--timeout", "1s"},
		{"bench"}, {"process"}, {"serve"}, {"materialize"}, {"pinot", "apply"}, {"pinot", "verify"},
		{"feed-store", "apply"}, {"feed-store", "verify"}, {"feed-store", "refill"},
		{"query", "feed", "user:ada"}, {"query", "why", "user:ada", "pin:1"}, {"query", "get", "status"},
		{"query", "features"}, {"query", "ready"},
	} {
		t.Run(strings.Join(args[:min(2, len(args))], " "), func(t *testing.T) {
			t.Parallel()
			code, _, errOut := execute(t, nil, append(args, away...)...)
			expect.Equal(t, code, 1, "exit code")
			expect.True(t, strings.HasPrefix(lastLines(errOut), "smartfeed: "), "printed %.500q", errOut)
		})
	}
}

// lastLines returns a command's output from "smartfeed:" to the end.
func lastLines(text string) string {
	if i := strings.LastIndex(text, "smartfeed: "); i >= 0 {
		return text[i:]
	}
	return text
}

// Completion offers groups, sources, stores and scopes, but nothing that depends on the configuration.
func TestCompletions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"process", ""}, topics.RowGroups()},
		{[]string{"rebuild", ""}, []string{"following", "interest", "all"}},
		{[]string{"replay", ""}, []string{"following", "interest", "all"}},
		{[]string{"rebuild", "user:ada", "--source", ""}, []string{"following", "interest"}},
		{[]string{"query", "feed", "user:ada", "--feed", ""}, nil},
		{[]string{"query", "features", ""}, nil},
		{[]string{"token", "--scope", ""}, []string{"operate"}},
		{[]string{"feed-store", "refill", "--store", ""}, []string{"primary", "standby"}},
		{[]string{"query", "feed", ""}, nil},
		{[]string{"query", "get", ""}, nil},
		{[]string{"erase", "user:"}, nil},
	} {
		code, out, _ := execute(t, nil, append([]string{"__complete"}, c.args...)...)
		offered := strings.Split(strings.TrimSpace(out), "\n")
		directive := offered[len(offered)-1]
		offered = offered[:len(offered)-1]
		for _, want := range c.want {
			expect.True(t, slices.Contains(offered, want), "%q offers %s, among %q", c.args, want, offered)
		}
		if code != 0 || len(offered) > 0 != (len(c.want) > 0) || directive != ":4" { // 4: no files
			t.Errorf("%q: exit code %d, offers %q, %s", c.args, code, offered, directive)
		}
	}
}

// The shells accept the completion scripts, if they are installed.
func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			code, script, errOut := execute(t, nil, "completion", shell)
			if code != 0 || len(script) < 1000 {
				t.Fatalf("exit code %d, %d bytes, %s", code, len(script), errOut)
			}
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("%s is not on this machine", shell)
			}
			cmd := exec.CommandContext(t.Context(), path, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s -n: %v\n%s", shell, err, out)
			}
		})
	}
}

// In a bash that has sourced the script, a tab after "process po" completes to "process pools".
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not on this machine")
	}
	dir := t.TempDir()
	must.OK(t, os.Symlink(os.Args[0], filepath.Join(dir, "smartfeed")))
	_, script, _ := execute(t, nil, "completion", "bash")
	cmd := exec.CommandContext(t.Context(), bash, "--norc", "-c", script+`
_get_comp_words_by_ref() { cur=po prev=process words=("${COMP_WORDS[@]}") cword=$COMP_CWORD; } # of the package bash-completion
COMP_LINE="smartfeed process po" COMP_POINT=20 COMP_WORDS=(smartfeed process po) COMP_CWORD=2 COMP_TYPE=9
compopt() { :; } # it works only while a shell completes
__start_smartfeed
printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = append(os.Environ(), childVariable+"=1", fmt.Sprintf("PATH=%s:%s", dir, os.Getenv("PATH")))
	out, err := cmd.CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "pools" {
		t.Errorf("offered %q, %v; want pools", got, err)
	}
}

// The guide names the package that provides a function of cobra's completion script, if the script calls it.
func TestToolsDocument_NamesWhatCompletionNeeds(t *testing.T) {
	_, script, _ := execute(t, nil, "completion", "bash")
	text := must.Get(os.ReadFile("../../docs/how-to/tools.md"))(t)
	_, after, _ := strings.Cut(string(text), "completion bash)")
	sentence, _, _ := strings.Cut(after, ".\n")
	const lent = "_get_comp_words_by_ref"
	needs := strings.Contains(script, lent) && !strings.Contains(script, lent+"()")
	expect.Equal(t, strings.Contains(sentence, "`bash-completion`"), needs, "docs/how-to/tools.md requires bash-completion, in %q", sentence)
}

func TestTopicsApply_CreatesNothingOnARealClusterWithoutANumberOfPartitions(t *testing.T) {
	c := must.Get(kfake.NewCluster(kfake.NumBrokers(1)))(t)
	t.Cleanup(c.Close)
	adm := must.Get(topics.Kafka{Brokers: c.ListenAddrs()}.Admin())(t)
	t.Cleanup(adm.Close)
	for _, args := range [][]string{{"topics", "apply"}, {"topics", "plan"}, {"pinot", "apply"}} {
		_, err := run(t, append(args, "--kafka", c.ListenAddrs()[0], "--dir", t.TempDir())...)
		expect.Error(t, err, "partitions: is not set", "%v", args)
	}
	expect.Equal(t, len(must.Get(adm.ListTopics(t.Context()))(t)), 0, "topics")
	must.Get(run(t, "topics", "apply", "--kafka", c.ListenAddrs()[0], "--partitions", "2"))(t)
	have, err := adm.ListTopics(t.Context(), topics.Pins)
	if n := len(have[topics.Pins].Partitions); err != nil || n != 2 {
		t.Errorf("%s has %d partitions, %v, want 2", topics.Pins, n, err)
	}
}

// dataset writes a small dataset in the format of Last.fm, and returns its directory.
func dataset(t *testing.T) string {
	t.Helper()
	return lastfmtest.Write(t, 0.001)
}

// tree returns a program with a group of two commands and a hidden one.
func tree() *cobra.Command {
	child := func(use string, hidden bool) *cobra.Command {
		return &cobra.Command{Use: use, Hidden: hidden, RunE: func(*cobra.Command, []string) error { return nil }}
	}
	root := &cobra.Command{Use: "prog", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(group("things", "Look at things", "  prog things list", child("list", false), child("drop", false), child("old", true)))
	return root
}

func TestGroup_NamesItsCommands(t *testing.T) {
	tests := map[string]struct {
		args []string
		want string // "": none
	}{
		"one of them": {[]string{"things", "list"}, ""},
		"none":        {[]string{"things"}, "prog things: want one of the commands drop, list"},
		"another":     {[]string{"things", "lits"}, `prog things: want one of the commands drop, list, not ["lits"]`},
	}
	for name, tt := range tests {
		root := tree()
		root.SetArgs(tt.args)
		err, usage := root.Execute(), new(command.UsageError)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.want != "" && (!errors.As(err, &usage) || err.Error() != tt.want):
			t.Errorf("%s: got %v, want wrong usage, %s", name, err, tt.want)
		}
	}
}
