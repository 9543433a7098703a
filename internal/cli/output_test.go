package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func TestOutput_PrintsEveryFormat(t *testing.T) {
	const id, show = "id decode 241294492511762325 -o ", "config show --changed --pools.max_candidates 70 -o "
	for line, want := range map[string]string{
		id + "table":                       "shard 3429 type 1 local 7075733\n",
		id + "json":                        "{\n  \"id\": \"241294492511762325\",\n  \"shard\": 3429,\n  \"type\": 1,\n  \"local\": 7075733\n}\n",
		id + "yaml":                        "id: \"241294492511762325\"\nshard: 3429\ntype: 1\nlocal: 7075733\n",
		"id decode pin:241294492511762325": "shard 3429 type 1 local 7075733\n",
		"id encode 3429 1 7075733":         "241294492511762325\n",
		show + "table":                     "pools:\n  max_candidates: 70\n",
		show + "yaml":                      "pools:\n  max_candidates: 70\n",
		show + "json":                      "{\n  \"pools\": {\n    \"max_candidates\": 70\n  }\n}\n",
	} {
		expect.Equal(t, must.Get(run(t, strings.Fields(line)...))(t), want, "%s", line)
	}
	expect.Contains(t, must.Get(run(t, "config", "show", "-o", "json"))(t), `"max_candidates": 500`, "defaults")
}

func TestPrintTables(t *testing.T) {
	long := strings.Repeat("x", maxNested)
	for value, want := range map[string]string{
		`[]`:                            "none\n",
		`{}`:                            "none\n",
		`7`:                             "7\n",
		`{"a":{"b":null,"c":[]}}`:       "a.b  none\na.c  none\n",
		`{"n":12345678901234567890}`:    "n  12345678901234567890\n",
		`{"n":[1.23456,0.0123456]}`:     "n  1.235, 0.0123\n",
		`{"s":["a","b\nc"],"t":"1.50"}`: "s  a\n   b; c\nt  1.50\n",
		`[{"id":"a","n":5,"x":null},{"n":25,"id":"b","more":true}]`:         "ID   N  MORE\na    5\nb   25  true\n",
		`[{"id":"a","l":[{"p":1,"m":[{"q":2}]}]},{"id":"b","l":[{"p":3}]}]`: "ID\na\nb\n\nl\nID  P\na   1\nb   3\n\nl.m\nID  P  Q\na   1  2\n",
		`[{"o":{"k":["` + long + `"]}}]`:                                    "O\n{k: [" + long[:maxNested-6] + "…\n",
		`{"s":"\u001b[2J\t\u202e\ud83d\ude00"}`:                             "s  \uFFFD[2J\uFFFD\uFFFD\U0001F600\n",
	} {
		var out strings.Builder
		must.OK(t, printTables(&out, json.RawMessage(value), nil))
		expect.Equal(t, out.String(), want, "%s", value)
	}
}

// The flags of the configuration are in the help of the root only, and each description is a short line that starts with
// a capital. Names of siblings differ by more than a letter.
func TestHelp(t *testing.T) {
	for _, c := range commands() {
		if isShell(c) {
			continue
		}
		if _, out, _ := execute(t, nil, append(words(c), "--help")...); strings.Contains(out, "--kafka list") {
			t.Errorf("%s --help lists the flags of the configuration", c.CommandPath())
		}
		first := []rune(c.Short)[0]
		if !unicode.IsUpper(first) || len(c.Short) > 80 || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q is no short line that starts with a capital", c.CommandPath(), c.Short)
		}
		for _, sibling := range c.Parent().Commands() {
			if a, b := c.Name(), sibling.Name(); len(a)+1 == len(b) && strings.HasPrefix(b, a) {
				t.Errorf("%s and %s differ by a letter", c.CommandPath(), b)
			}
		}
	}
}
