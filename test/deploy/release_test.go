package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/rhysd/actionlint"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

func loadRelease(t *testing.T) config.Project {
	t.Helper()
	return must.Get(config.Load(".goreleaser.yaml"))(t) // strict
}

// A release must have a binary without cgo, an SBOM and an archive for each platform, signed checksums, and a signed image with labels.
func TestRelease_HasSignedArtifacts(t *testing.T) {
	release := loadRelease(t)
	build, image := release.Builds[0], release.DockersV2[0]
	if !slices.Equal(build.Goos, []string{"linux", "darwin"}) || !slices.Equal(build.Goarch, []string{"amd64", "arm64"}) || !slices.Contains(build.Env, "CGO_ENABLED=0") {
		t.Errorf("builds for %q × %q with %q", build.Goos, build.Goarch, build.Env)
	}
	expect.Contains(t, strings.Join(build.Ldflags, " "), "-X github.com/smartfeed/smartfeed/app.version={{ .Tag }}", "flags of the linker")
	if release.SBOMs[0].Artifacts != "archive" || image.SBOM != "true" || release.Checksum.NameTemplate == "" {
		t.Error("SBOMs or checksums are missing")
	}
	if s := release.Signs[0]; s.Artifacts != "checksum" || !slices.Contains(s.Args, "--bundle=${signature}") || s.Signature == "" {
		t.Errorf("checksums are signed by %+v", s)
	}
	if s := release.DockerSigns[0]; s.Artifacts != "all" || !slices.Contains(s.Args, "${artifact}@${digest}") {
		t.Errorf("images are signed by %+v", s)
	}
	for _, label := range []string{"version", "revision", "created"} {
		expect.True(t, image.Labels["org.opencontainers.image."+label] != "", "the image has the label %s", label)
	}
	for _, pattern := range release.Archives[0].Files {
		expect.AtLeast(t, len(must.Get(filepath.Glob(pattern.Source))(t)), 1, "archives: files that match %s", pattern.Source)
	}
}

// The build context of the image must contain all Go files of the program, and the chart must use the image.
func TestRelease_ImageContextIsComplete(t *testing.T) {
	image := loadRelease(t).DockersV2[0]
	expect.Equal(t, fmt.Sprint(image.Images, image.Platforms), "[ghcr.io/smartfeed/smartfeed] [linux/amd64 linux/arm64]", "the image")
	expect.Equal[any](t, loadChart(t).Values["image"].(map[string]any)["repository"], image.Images[0], "the image of the chart")
	for _, file := range image.ExtraFiles {
		must.Get(os.Stat(file))(t)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
	for path := range strings.Lines(string(must.Get(list.Output())(t))) {
		folder, ours := strings.CutPrefix(strings.TrimSpace(path), "github.com/smartfeed/smartfeed/")
		if folder, _, _ = strings.Cut(folder, "/"); ours && !slices.Contains(image.ExtraFiles, folder) {
			t.Errorf("extra_files does not contain %s", folder)
		}
	}
}

// The versions of the chart must be that of the changelog.
func TestRelease_ChartHasVersionOfChangelog(t *testing.T) {
	version := regexp.MustCompile(`(?m)^## .*?(\d+\.\d+\.\d+)`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if m := loadChart(t).Metadata; version == nil || m.Version != version[1] || m.AppVersion != version[1] {
		t.Errorf("the chart is %s for %s, want %v", m.Version, m.AppVersion, version)
	}
}

// GitHub must accept the workflows.
func TestWorkflows_AreValid(t *testing.T) {
	var out strings.Builder
	linter := must.Get(actionlint.NewLinter(&out, &actionlint.LinterOptions{Oneline: true}))(t)
	for _, file := range workflows(t) {
		problems := must.Get(linter.LintFile(file, nil))(t)
		for _, p := range problems {
			t.Error(p)
		}
	}
}

func workflows(t *testing.T) []string {
	t.Helper()
	found := must.Get(filepath.Glob(".github/workflows/*.yml"))(t)
	expect.Equal(t, len(found), 2, "workflows %q", found)
	return found
}

// steps returns the steps of all workflows.
func steps(t *testing.T) (all []*actionlint.Step) {
	t.Helper()
	for _, file := range workflows(t) {
		workflow, problems := actionlint.Parse([]byte(read(t, file)))
		if len(problems) > 0 {
			t.Fatal(file, problems)
		}
		for _, job := range workflow.Jobs {
			all = append(all, job.Steps...)
		}
	}
	return all
}

// Each command of a workflow must be a script, a target of the Makefile, or a tool of the runner, and each action must be pinned.
func TestWorkflows_RunExistingCommands(t *testing.T) {
	makefile, ran := read(t, "Makefile"), map[string]bool{}
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+(/[\w-]+)?@[0-9a-f]{40}$`)
	for _, step := range steps(t) {
		if action, is := step.Exec.(*actionlint.ExecAction); is && !pinned.MatchString(action.Uses.Value) {
			t.Errorf("%s: want the hash of a commit", action.Uses.Value)
		}
		run, is := step.Exec.(*actionlint.ExecRun)
		if !is {
			continue
		}
		for line := range strings.Lines(run.Run.Value) {
			words := strings.Fields(line)
			ran[strings.Join(words[:min(2, len(words))], " ")] = true
			switch info, err := os.Stat(words[0]); {
			case words[0] == "make" && strings.Contains(makefile, "\n"+words[1]+":"), words[0] == "git", words[0] == "helm":
			case err != nil || info.Mode()&0o111 == 0:
				t.Errorf("%s: is not a script, a target of the Makefile, git or helm", line)
			}
		}
	}
	for _, want := range []string{".ci/run", "make test-deploy", "make cross", "helm package", "helm push"} {
		expect.True(t, ran[want], "a workflow runs %s: %v", want, ran)
	}
}
