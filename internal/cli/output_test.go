package cli

import (
	"strings"
	"testing"
	"unicode"
)

func TestOutput_PrintsEveryFormat(t *testing.T) {
	for flag, want := range map[string]string{
		"table": "shard 3429 type 1 local 7075733\n",
		"json":  "{\n  \"id\": \"241294492511762325\",\n  \"shard\": 3429,\n  \"type\": 1,\n  \"local\": 7075733\n}\n",
		"yaml":  "id: \"241294492511762325\"\nshard: 3429\ntype: 1\nlocal: 7075733\n",
	} {
		if out, err := run(t, "id", "decode", "241294492511762325", "-o", flag); err != nil || out != want {
			t.Errorf("-o %s: got %q, %v, want %q", flag, out, err, want)
		}
	}
}

func TestConfigShow_PrintsEveryFormat(t *testing.T) {
	for flag, want := range map[string]string{
		"table": "pools:\n  max_candidates: 70\n", "yaml": "pools:\n  max_candidates: 70\n",
		"json": "{\n  \"pools\": {\n    \"max_candidates\": 70\n  }\n}\n",
	} {
		if out, err := run(t, "config", "show", "--changed", "--pools.max_candidates", "70", "-o", flag); err != nil || out != want {
			t.Errorf("-o %s: got %q, %v, want %q", flag, out, err, want)
		}
	}
	if out, err := run(t, "config", "show", "-o", "json"); err != nil || !strings.Contains(out, `"min_affinity": "-.inf"`) {
		t.Errorf("got %q, %v, want the default steps", out, err)
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
