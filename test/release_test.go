package test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/zip"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// The version of Go must be the same in go.mod, the image and the workflow that runs the gate.
func TestRelease_HasOneToolchain(t *testing.T) {
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(readText(t, "go.mod"))
	if toolchain == nil || goVersion(t) != toolchain[1] {
		t.Fatalf("go.mod has the toolchain %q, the image %s", toolchain, goVersion(t))
	}
	image := regexp.MustCompile(`golang:\S+@sha256:[0-9a-f]{64}`)
	gate, build := image.FindString(readText(t, ".github/workflows/ci.yml")), image.FindString(readText(t, "Dockerfile"))
	expect.Equal(t, gate, build, "image in which the gate runs: that of the build")
	expect.True(t, gate != "", "the gate runs in an image")
}

// The first commands of the README must be those of the image and of the module.
func TestReadme_FirstCommandsMatchRelease(t *testing.T) {
	lines := strings.SplitN(readText(t, "README.md"), "\n", 6)
	docker := regexp.MustCompile(`^docker run --rm -p 127\.0\.0\.1:(\d+):(\d+) (\S+)( .*)?$`).FindStringSubmatch(strings.TrimSpace(strings.Split(lines[3], "#")[0]))
	if docker == nil || docker[1] != docker[2] || docker[4] != "" || !strings.Contains(lines[3], "http://127.0.0.1:"+docker[1]) {
		t.Fatalf("README.md: %q does not run the default command of an image at the printed address", lines[3])
	}
	expect.Contains(t, readText(t, ".goreleaser.yaml"), "images: ["+docker[3]+"]", ".goreleaser.yaml")
	if args := imageCommand(t); !slices.Contains(args, "--demo") || !slices.Contains(args, "0.0.0.0:"+docker[2]) {
		t.Errorf("%q does not run the demo on port %s", args, docker[2])
	}
	install, run, _ := strings.Cut(strings.TrimSpace(strings.Split(lines[4], "#")[0]), " && ")
	expect.Equal(t, install, "go install github.com/smartfeed/smartfeed@latest", "README.md: installation")
	expect.Equal(t, run, "smartfeed dev --demo", "README.md: command")
}

// imageCommand returns the default command of the image.
func imageCommand(t *testing.T) (args []string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(readText(t, "Dockerfile"))
	if line == nil {
		t.Fatal("the Dockerfile has no CMD")
	}
	must.OK(t, json.Unmarshal([]byte(line[1]), &args))
	return args
}

// `go install` must accept the module: it rejects a go.mod with replace or exclude, and a module zip with invalid or too large files.
func TestRelease_ModuleIsInstallable(t *testing.T) {
	file := must.Get(modfile.Parse("go.mod", []byte(readText(t, "go.mod")), nil))(t)
	if len(file.Replace)+len(file.Exclude) > 0 || file.Module.Mod.Path != "github.com/smartfeed/smartfeed" {
		t.Errorf("%s has %d replace and %d exclude directives", file.Module.Mod, len(file.Replace), len(file.Exclude))
	}
	var files []zip.File
	for name := range strings.Lines(string(must.Get(exec.CommandContext(t.Context(), "git", "ls-files").Output())(t))) {
		files = append(files, tracked(strings.TrimSpace(name)))
	}
	expect.AtLeast(t, len(must.Get(zip.CheckFiles(files))(t).Valid), 500, "files of the zip of the module")
}

// tracked is the path of a tracked file. It implements zip.File.
type tracked string

func (f tracked) Path() string                 { return string(f) }
func (f tracked) Lstat() (os.FileInfo, error)  { return os.Lstat(string(f)) }
func (f tracked) Open() (io.ReadCloser, error) { return os.Open(string(f)) }
