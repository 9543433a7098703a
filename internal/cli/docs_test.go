package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/config"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/schemas"
	"github.com/smartfeed/smartfeed/serving/feature"
)

// documents returns the paths of all documents: those at the root, except the changelog, and those in docs.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md"} {
		found := must.Get(filepath.Glob(pattern))(t)
		expect.AtLeast(t, len(found), 1, "documents that match %s", pattern)
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(file string) bool { return filepath.Base(file) == "CHANGELOG.md" })
}

// The program accepts the commands and files in the documents.
func TestDocuments_HaveValidCommands(t *testing.T) {
	commands, files := 0, 0
	for _, name := range documents(t) {
		text := must.Get(os.ReadFile(name))(t)
		for _, m := range regexp.MustCompile("(?m)^ {4}((?:bin/)?smartfeed .*)$|`((?:bin/)?smartfeed [^`]*)`").FindAllSubmatch(text, -1) {
			line, _, _ := strings.Cut(strings.Join(strings.Fields(string(m[1])+string(m[2])), " "), " #")
			commands++
			expect.Error(t, understood(line), "", "%s: %q", name, line)
		}
		for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
			files++
			cfg, file := app.DefaultConfig(), filepath.Join(t.TempDir(), "smartfeed.yaml")
			must.OK(t, os.WriteFile(file, m[1], 0o600))
			expect.Error(t, config.Load(&cfg, config.Source{File: file}), "", "%s: %s", name, m[1])
		}
	}
	expect.AtLeast(t, commands, 40, "commands")
	expect.AtLeast(t, files, 3, "files")
}

// Events and feature definitions in the documents, each on a separate line, can be parsed.
func TestDocuments_HaveValidEventsAndFeatures(t *testing.T) {
	events, features := 0, 0
	for _, name := range documents(t) {
		text := must.Get(os.ReadFile(name))(t)
		for _, line := range regexp.MustCompile(`(?m)^ *(\{"stream":.*\})$`).FindAllSubmatch(text, -1) {
			events++
			expect.Error(t, expect.ErrorOf(schemas.ParseLine(line[1])), "", "%s: %s", name, line[1])
		}
		for _, line := range regexp.MustCompile(`(?m)^ *(- \{name: .*, entity: .*\})$`).FindAllSubmatch(text, -1) {
			features++
			expect.Error(t, expect.ErrorOf(feature.Parse(name, append([]byte("features:\n  "), line[1]...))), "", "%s: %s", name, line[1])
		}
	}
	expect.AtLeast(t, events, 4, "events")
	expect.AtLeast(t, features, 1, "features")
}

// TestDocuments_LinkToExistingFilesAndHeadings checks the relative links of all documents.
func TestDocuments_LinkToExistingFilesAndHeadings(t *testing.T) {
	links := 0
	for _, name := range documents(t) {
		text := must.Get(os.ReadFile(name))(t)
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllSubmatch(text, -1) {
			target, heading, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: link to %s: %v", name, m[1], err)
				continue
			}
			expect.True(t, heading == "" || slices.Contains(anchors(t, file), heading), "%s: link to a heading of %s: %s", name, file, m[1])
		}
	}
	expect.AtLeast(t, links, 40, "links")
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	var all []string
	for _, m := range regexp.MustCompile("(?m)^#+ (.*)$").FindAllSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(string(m[1])), "")
		all = append(all, strings.ReplaceAll(anchor, " ", "-"))
	}
	return all
}
