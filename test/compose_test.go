package test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/cli"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// composed reads docker-compose.yml as docker does, with every profile.
func composed(t *testing.T) *types.Project {
	t.Helper()
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: ".", ConfigFiles: []types.ConfigFile{{Filename: "docker-compose.yml"}}, Environment: types.Mapping{},
	}, func(o *loader.Options) {
		o.SetProjectName("smartfeed", true)
		o.Profiles = []string{"*"}
	})
	must.OK(t, err)
	return project
}

// ours tells whether a service is a role of ours, and whether it goes on: the others end when they are done.
func ours(s types.ServiceConfig) (is, goesOn bool) { return s.Build != nil, s.Restart != "" }

// Every service is pinned, bounded, checked, reached on loopback alone, and starts when what it needs is healthy.
func TestComposeServices(t *testing.T) {
	project := composed(t)
	pinned := regexp.MustCompile(`:v?\d+\.\d+\.\d+$`)
	volumes := map[string]string{}
	for name, s := range project.Services {
		is, goesOn := ours(s)
		if !is && !pinned.MatchString(s.Image) {
			t.Errorf("%s: image %s: want a whole version", name, s.Image)
		}
		if s.MemLimit <= 0 {
			t.Errorf("%s: no memory limit", name)
		}
		if (!is || goesOn) && (s.HealthCheck == nil || len(s.HealthCheck.Test) < 2) {
			t.Errorf("%s: no health check", name)
		}
		if is && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.User != "" || s.Privileged) {
			t.Errorf("%s: can write its image, or has rights", name)
		}
		if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") || s.Logging == nil || s.Logging.Options["max-size"] == "" {
			t.Errorf("%s: no-new-privileges or a bound on its log is missing", name)
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" || p.Published == "" {
				t.Errorf("%s: port %d is published on %q", name, p.Target, p.HostIP)
			}
		}
		for on, d := range s.DependsOn {
			if _, goesOn := ours(project.Services[on]); goesOn && d.Condition != types.ServiceConditionHealthy ||
				!goesOn && d.Condition != types.ServiceConditionCompletedSuccessfully {
				t.Errorf("%s: depends on %s being %s", name, on, d.Condition)
			}
		}
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeVolume {
				continue
			}
			if other, shared := volumes[v.Source]; shared {
				t.Errorf("%s and %s share the volume %s", name, other, v.Source)
			}
			volumes[v.Source] = name
		}
	}
	for name := range project.Volumes {
		if _, used := volumes[name]; !used {
			t.Errorf("nobody uses the volume %s", name)
		}
	}
	if len(project.Services) < 18 {
		t.Errorf("%d services: were all looked at?", len(project.Services))
	}
}

// What a role of ours is told is a configuration in order, and its command is one.
func TestComposeRoles(t *testing.T) {
	roles := 0
	for name, s := range composed(t).Services {
		if is, _ := ours(s); !is {
			continue
		}
		roles++
		var environ []string
		for key, value := range s.Environment {
			if strings.HasPrefix(key, "SMARTFEED_") {
				environ = append(environ, key+"="+*value)
			}
		}
		commands := [][]string{{"config", "check"}, append(slices.Clone([]string(s.Command)), "--help")}
		if s.HealthCheck != nil {
			if got := s.HealthCheck.Test[:2]; !slices.Equal(got, []string{"CMD", "/smartfeed"}) {
				t.Errorf("%s: health check %q: the image has nothing but /smartfeed", name, got)
			}
			commands = append(commands, append(slices.Clone([]string(s.HealthCheck.Test[2:])), "--help"))
		}
		for _, args := range commands {
			var out, problems strings.Builder
			if code := cli.Execute(t.Context(), args, environ, strings.NewReader(""), &out, &problems); code != 0 ||
				args[0] != "config" && !strings.Contains(out.String(), "smartfeed "+strings.Join(args[:1], " ")) {
				t.Errorf("%s: %q ends with exit code %d: %s", name, args, code, problems.String())
			}
		}
	}
	if roles != 8 {
		t.Errorf("%d roles, want topics, tables, pinot-table, two processes, materialize, serve, demo", roles)
	}
}

// versions are those of a server that the tests run on, by artifact.
func versions(t *testing.T, server string) map[string]string {
	t.Helper()
	f, err := os.Open(".ci/servers/" + server + "/pom.xml")
	must.OK(t, err)
	defer f.Close()
	found, artifact, last := map[string]string{}, "", ""
	for dec := xml.NewDecoder(f); ; {
		token, err := dec.Token()
		if err == io.EOF {
			return found
		}
		must.OK(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			last = token.Name.Local
		case xml.EndElement:
			last = ""
		case xml.CharData:
			switch last {
			case "artifactId":
				artifact = string(token)
			case "version":
				if _, there := found[artifact]; !there {
					found[artifact] = string(token)
				}
			}
		}
	}
}

// What people run is what the tests ran, but for Pinot, of which the tests cannot have a present release.
func TestComposeImagesAreWhatIsTested(t *testing.T) {
	services := composed(t).Services
	for _, c := range []struct{ service, image, server, artifact string }{
		{"kafka", "apache/kafka", "kafka", "kafka_2.13"},
		{"registry", "apicurio/apicurio-registry", "registry", "apicurio-registry-app"},
		{"cassandra-primary", "cassandra", "cassandra", "cassandra-all"},
		{"cassandra-standby", "cassandra", "cassandra", "cassandra-all"},
	} {
		if got, want := services[c.service].Image, c.image+":"+versions(t, c.server)[c.artifact]; got != want {
			t.Errorf("%s: got %s, want %s", c.service, got, want)
		}
	}
	for _, name := range []string{"pinot-controller", "pinot-broker", "pinot-server"} {
		if got := services[name].Image; got != services["pinot-controller"].Image || !strings.HasPrefix(got, "apachepinot/pinot:1.5.") {
			t.Errorf("%s: got %s, want one release of 1.5 for all, which the table is made for", name, got)
		}
	}
}

// runFile is the text of a server's start script.
func runFile(t *testing.T, server string) string {
	t.Helper()
	text, err := os.ReadFile(".ci/servers/" + server + "/run")
	must.OK(t, err)
	return string(text)
}

// A setting that the tests' Kafka has, too, has the same value; but for addresses, and for what a test wants sooner.
func TestComposeKafkaIsSetAsTested(t *testing.T) {
	tested := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9.]+)=(.*)$`).FindAllStringSubmatch(runFile(t, "kafka"), -1) {
		if !strings.Contains(m[2], "$") {
			tested[m[1]] = m[2]
		}
	}
	compared := 0
	for key, value := range composed(t).Services["kafka"].Environment {
		name, isSetting := strings.CutPrefix(key, "KAFKA_")
		name = strings.ToLower(strings.ReplaceAll(name, "_", "."))
		want, is := tested[name]
		if !isSetting || !is || name == "listener.security.protocol.map" || name == "inter.broker.listener.name" {
			continue
		}
		compared++
		if *value != want {
			t.Errorf("%s is %s, in the tests %s", name, *value, want)
		}
	}
	if compared < 6 {
		t.Errorf("%d settings compared: were they found?", compared)
	}
}

// The Cassandras are set as the tests' are, but for addresses, the sizes of caches, and time-outs: they have their own.
func TestComposeCassandraIsSetAsTested(t *testing.T) {
	_, text, _ := strings.Cut(runFile(t, "cassandra"), "<<YAML\n")
	text, _, found := strings.Cut(text, "\n$secured\nYAML\n")
	tested := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tested); err != nil || !found {
		t.Fatalf("%v, %v", err, found)
	}
	project := composed(t)
	for _, name := range []string{"cassandra-primary", "cassandra-standby"} {
		got := map[string]any{}
		must.OK(t, yaml.Unmarshal([]byte(project.Configs[name].Content), &got))
		if seeds := got["seed_provider"].([]any)[0].(map[string]any)["parameters"].([]any)[0].(map[string]any)["seeds"]; seeds != name ||
			got["broadcast_rpc_address"] != name || got["cluster_name"] != "smartfeed-"+strings.TrimPrefix(name, "cassandra-") {
			t.Errorf("%s: its cluster is not its own", name)
		}
		want := maps.Clone(tested)
		for _, own := range []string{"cluster_name", "seed_provider", "broadcast_rpc_address", "rpc_address", "listen_address",
			"storage_port", "native_transport_port", "key_cache_size", "file_cache_size", "networking_cache_size"} {
			delete(got, own)
			delete(want, own)
		}
		maps.DeleteFunc(want, func(setting string, _ any) bool { return strings.HasSuffix(setting, "_request_timeout") })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-tested +composed):\n%s", name, diff)
		}
		if !slices.ContainsFunc(project.Services[name].Configs, func(c types.ServiceConfigObjConfig) bool { return c.Source == name }) {
			t.Errorf("%s does not get its settings", name)
		}
	}
}

// Each address that a service is told is the name and a port of another.
func TestComposeAddresses(t *testing.T) {
	services := composed(t).Services
	address := regexp.MustCompile(`\b([a-z][a-z0-9-]*):(\d{4,5})\b`)
	found := 0
	for name, s := range services {
		text := strings.Join(s.Command, " ")
		for _, value := range s.Environment {
			text += " " + *value
		}
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			found++
			if other, there := services[m[1]]; !there && m[1] != "smartfeed" {
				t.Errorf("%s asks %s, and there is no such service", name, m[0])
			} else if there && !listens(other, m[2]) {
				t.Errorf("%s asks %s, and %s does not listen there", name, m[0], m[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d addresses: were they found?", found)
	}
}

// listens tells whether a service says that it listens on a port, or its image does by itself.
func listens(s types.ServiceConfig, port string) bool {
	text := strings.Join(s.Command, " ")
	for _, value := range s.Environment {
		text += " " + *value
	}
	if s.HealthCheck != nil {
		text += " " + strings.Join(s.HealthCheck.Test, " ")
	}
	byItself := map[string]string{"cassandra": "9042", "zookeeper": "2181"}
	image, _, _ := strings.Cut(s.Image, ":")
	return byItself[image] == port || regexp.MustCompile(`(//|localhost|0\.0\.0\.0):`+port+`\b|Port `+port+`\b`).MatchString(text)
}

// The limits add up to what the file says of them.
func TestComposeMemory(t *testing.T) {
	text, err := os.ReadFile("docker-compose.yml")
	must.OK(t, err)
	sums := map[bool]types.UnitBytes{} // with monitoring, or without
	for _, s := range composed(t).Services {
		is, goesOn := ours(s)
		if is && !goesOn {
			continue
		}
		sums[true] += s.MemLimit
		if len(s.Profiles) == 0 {
			sums[false] += s.MemLimit
		}
	}
	if want := fmt.Sprintf("add up to %.1f GiB, %.1f with monitoring.", float64(sums[false])/(1<<30), float64(sums[true])/(1<<30)); !strings.Contains(string(text), want) {
		t.Errorf("the limits %s It says something else.", want)
	}
}

// What Go collects for, with what Pebble holds outside of Go's heap, is less than the limit at which a role is killed, and
// docs/operations/deploy.md gives the same sizes.
func TestComposeRolesCollectBeforeTheyAreKilled(t *testing.T) {
	const binary = 64 << 20 // its pages, and the stacks of C
	text, err := os.ReadFile("docs/operations/deploy.md")
	must.OK(t, err)
	rows := app.DefaultConfig().Rows
	roles := 0
	for name, s := range composed(t).Services {
		if is, goesOn := ours(s); !is || !goesOn {
			continue
		}
		roles++
		role, pebble := s.Command[0], int64(0)
		if role == "process" {
			pebble = rows.CacheBytes + rows.MemTableBytes
		}
		collects := goMemLimit(t, s)
		if held := collects + pebble + binary; held > int64(s.MemLimit) {
			t.Errorf("%s: Go collects for %d MiB, %d with what is not Go's, and it is killed with %d", name, collects>>20, held>>20, s.MemLimit>>20)
		}
		want := fmt.Sprintf("%s %.1f GiB: GOMEMLIMIT %d MiB", role, float64(s.MemLimit)/(1<<30), collects>>20)
		if pebble > 0 {
			want += fmt.Sprintf(", %d MiB block cache and memtables", pebble>>20)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/operations/deploy.md does not say %s", want)
		}
	}
	if roles != 4 {
		t.Errorf("%d roles go on, want two processes, materialize, serve", roles)
	}
}

// goMemLimit is a role's GOMEMLIMIT in bytes.
func goMemLimit(t *testing.T, s types.ServiceConfig) int64 {
	t.Helper()
	value := s.Environment["GOMEMLIMIT"]
	if value == nil {
		t.Fatalf("%s has no GOMEMLIMIT", s.Name)
	}
	number, found := strings.CutSuffix(*value, "MiB")
	mib, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !found {
		t.Fatalf("%s: GOMEMLIMIT is %q, want MiB", s.Name, *value)
	}
	return mib << 20
}

// goVersion is the release of Go that the image is built with: not before the one that go.mod wants.
func goVersion(t *testing.T) string {
	t.Helper()
	mod, err := os.ReadFile("go.mod")
	must.OK(t, err)
	file, err := os.ReadFile("Dockerfile")
	must.OK(t, err)
	wants := regexp.MustCompile(`(?m)^go (\S+)`).FindSubmatch(mod)
	has := regexp.MustCompile(`golang:(\d+\.\d+\.\d+)-`).FindSubmatch(file)
	if wants == nil || has == nil || version.Compare("go"+string(has[1]), "go"+string(wants[1])) < 0 {
		t.Fatalf("go.mod wants %s, the image is built with %s: want a whole version that is no older", wants, has)
	}
	return string(has[1])
}

// The image holds the program and the C library it was built against, is nobody's in particular, and starts what is told.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	must.OK(t, err)
	for _, want := range []string{"FROM golang:" + goVersion(t) + "-bookworm AS build\n", "-X github.com/smartfeed/smartfeed/app.version=${VERSION}", "CGO_ENABLED=1", "FROM gcr.io/distroless/base-nossl-debian12:nonroot\n", `ENTRYPOINT ["/smartfeed"]`, "--chown=nonroot:nonroot /data /data"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
}

// The command that the image runs by default listens where a published port reaches it, and is one that starts.
func TestDockerfile_DefaultCommandIsReachableThroughAPublishedPort(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	must.OK(t, err)
	line := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindSubmatch(text)
	if line == nil {
		t.Fatal("the Dockerfile has no CMD")
	}
	var args []string
	must.OK(t, json.Unmarshal(line[1], &args))
	if i := slices.Index(args, "--http"); i < 0 || i+1 == len(args) || args[i+1] != "0.0.0.0:8080" || args[0] != "dev" {
		t.Errorf("the command is %q, want dev --http 0.0.0.0:8080", args)
	}
	args = append(slices.Concat([]string{"config", "check"}, args), "--dir", t.TempDir())
	var out, problems strings.Builder
	if code := cli.Execute(t.Context(), args, nil, strings.NewReader(""), &out, &problems); code != 0 {
		t.Errorf("the command is refused: %s", &problems)
	}
}

// The time that a role has to end is longer than the time after which it ends by itself.
func TestComposeRolesMayEnd(t *testing.T) {
	for name, s := range composed(t).Services {
		if is, goesOn := ours(s); is && goesOn && (s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) <= app.ShutdownTimeout) {
			t.Errorf("%s has %v to end, want more than %s", name, s.StopGracePeriod, app.ShutdownTimeout)
		}
	}
}
