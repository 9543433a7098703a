package main

import (
	"strings"
	"testing"
)

func TestOwnSourceScoreAndRule(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), t.TempDir(), &out); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	for _, want := range []string{"pin:tea from following\n", "pin:boat from following\n", "pin:chosen from editors\n", "pin:held is waiting because of own_rule\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Index(got, "pin:tea") > strings.Index(got, "pin:boat") {
		t.Errorf("the score does not count:\n%s", got)
	}
	if strings.Contains(got, "pin:held from") {
		t.Errorf("the rule does not count:\n%s", got)
	}
}
