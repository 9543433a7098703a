package test

import (
	"encoding/xml"
	"go/version"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// loadProject reads docker-compose.yml, and files that override it, like docker, with every profile.
func loadProject(t *testing.T, overrides ...string) *types.Project {
	t.Helper()
	files := []types.ConfigFile{{Filename: "docker-compose.yml"}}
	for _, name := range overrides {
		files = append(files, types.ConfigFile{Filename: name})
	}
	project := must.Get(loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: ".", ConfigFiles: files, Environment: types.Mapping{},
	}, func(o *loader.Options) {
		o.SetProjectName("smartfeed", true)
		o.Profiles = []string{"*"}
	}))(t)
	return project
}

// isRole reports whether a service runs smartfeed, and whether it is a permanent role instead of a one-time command.
func isRole(s types.ServiceConfig) (is, permanent bool) { return s.Build != nil, s.Restart != "" }

// Every service must have a pinned image, limits, a health check and only loopback ports, and must start after its
// dependencies are healthy.
func TestCompose_HardensEveryService(t *testing.T) {
	project := loadProject(t)
	pinned := regexp.MustCompile(`:v?\d+\.\d+\.\d+$`)
	volumes := map[string]string{}
	for name, s := range project.Services {
		is, permanent := isRole(s)
		expect.True(t, is || pinned.MatchString(s.Image), "%s: image %s has a full version", name, s.Image)
		expect.True(t, s.MemLimit > 0, "%s has a memory limit", name)
		expect.False(t, (!is || permanent) && (s.HealthCheck == nil || len(s.HealthCheck.Test) < 2), "%s has no health check", name)
		if is && (!s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.User != "" || s.Privileged) {
			t.Errorf("%s: the root file system is writable, or the container has capabilities", name)
		}
		expect.True(t, slices.Contains(s.SecurityOpt, "no-new-privileges:true"), "%s gains no privileges", name)
		expect.True(t, s.Logging != nil && s.Logging.Options["max-size"] != "", "%s: the log has a limit", name)
		for _, p := range s.Ports {
			expect.True(t, p.HostIP == "127.0.0.1" && p.Published != "", "%s: port %d is published on %q", name, p.Target, p.HostIP)
		}
		for on, d := range s.DependsOn {
			if _, permanent := isRole(project.Services[on]); permanent && d.Condition != types.ServiceConditionHealthy ||
				!permanent && d.Condition != types.ServiceConditionCompletedSuccessfully {
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
			t.Errorf("no service uses the volume %s", name)
		}
	}
	expect.AtLeast(t, len(project.Services), 18, "services")
}

// The configuration and the command of each role must be valid.
func TestCompose_RolesHaveValidConfiguration(t *testing.T) {
	roles := 0
	for name, s := range loadProject(t).Services {
		if is, _ := isRole(s); !is {
			continue
		}
		roles++
		commands := [][]string{{"config", "check"}, append(slices.Clone([]string(s.Command)), "--help")}
		if s.HealthCheck != nil {
			expect.NoDiff(t, s.HealthCheck.Test[:2], []string{"CMD", "/smartfeed"}, "%s: health check (the image has no shell)", name)
			commands = append(commands, append(slices.Clone([]string(s.HealthCheck.Test[2:])), "--help"))
		}
		for _, args := range commands {
			out := run(t, name, environ(s), args...)
			expect.True(t, args[0] == "config" || strings.Contains(out, "smartfeed "+args[0]), "%s: %q prints %s", name, args, out)
		}
	}
	expect.Equal(t, roles, 8, "roles: topics, tables, pinot-table, two processes, materialize, serve, demo")
}

// environ returns the variables of smartfeed in a service.
func environ(s types.ServiceConfig) (vars []string) {
	for key, value := range s.Environment {
		if strings.HasPrefix(key, "SMARTFEED_") {
			vars = append(vars, key+"="+*value)
		}
	}
	return vars
}

// The light file has one broker, one node and one process of each role. Each role has a valid configuration without Pinot and
// without a standby, and depends only on services that exist.
func TestCompose_LightHasOneOfEach(t *testing.T) {
	project := loadProject(t, "docker-compose.light.yml")
	names := slices.Sorted(maps.Keys(project.Services))
	want := []string{"cassandra-primary", "demo", "grafana", "kafka", "materialize", "process-1", "prometheus", "registry", "serve", "tables", "topics"}
	expect.NoDiff(t, names, want, "services")
	for name, s := range project.Services {
		for on := range s.DependsOn {
			expect.True(t, slices.Contains(names, on), "%s depends on %s, which the light file has", name, on)
		}
		if is, _ := isRole(s); !is {
			continue
		}
		for key, value := range s.Environment {
			if value == nil || strings.Contains(key, "PINOT") || strings.Contains(key, "STANDBY") {
				t.Fatalf("%s: %s is still set, or empty", name, key)
			}
		}
		run(t, name, environ(s), "config", "check")
	}
}

// versions returns the versions of a server in the tests, by artifact.
func versions(t *testing.T, server string) map[string]string {
	t.Helper()
	type artifact struct {
		ID      string `xml:"artifactId"`
		Version string `xml:"version"`
	}
	var file struct {
		Dependencies []artifact `xml:"dependencies>dependency"`
		Items        []artifact `xml:"build>plugins>plugin>configuration>artifactItems>artifactItem"`
	}
	must.OK(t, xml.Unmarshal([]byte(readText(t, ".ci/servers/"+server+"/pom.xml")), &file))
	found := map[string]string{}
	for _, a := range slices.Concat(file.Dependencies, file.Items) {
		found[a.ID] = a.Version
	}
	return found
}

// The images must have the releases of the servers in the tests, except for Pinot, whose current release the tests cannot run.
func TestCompose_ImagesMatchTestedReleases(t *testing.T) {
	services := loadProject(t).Services
	for _, c := range []struct{ service, image, server, artifact string }{
		{"kafka", "apache/kafka", "kafka", "kafka_2.13"},
		{"registry", "apicurio/apicurio-registry", "registry", "apicurio-registry-app"},
		{"cassandra-primary", "cassandra", "cassandra", "cassandra-all"},
		{"cassandra-standby", "cassandra", "cassandra", "cassandra-all"},
	} {
		expect.Equal(t, services[c.service].Image, c.image+":"+versions(t, c.server)[c.artifact], "%s", c.service)
	}
	for _, name := range []string{"pinot-controller", "pinot-broker", "pinot-server"} {
		if got := services[name].Image; got != services["pinot-controller"].Image || !strings.HasPrefix(got, "apachepinot/pinot:1.5.") {
			t.Errorf("%s: got %s, want the same release of 1.5 for all, the release of the table", name, got)
		}
	}
}

// The settings of Kafka must match those of the tests, except for addresses and shorter delays of the tests.
func TestCompose_KafkaMatchesTestedSettings(t *testing.T) {
	tested := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9.]+)=(.*)$`).FindAllStringSubmatch(readText(t, ".ci/servers/kafka/run"), -1) {
		if !strings.Contains(m[2], "$") {
			tested[m[1]] = m[2]
		}
	}
	compared := 0
	for key, value := range loadProject(t).Services["kafka"].Environment {
		name, isSetting := strings.CutPrefix(key, "KAFKA_")
		name = strings.ToLower(strings.ReplaceAll(name, "_", "."))
		want, is := tested[name]
		if !isSetting || !is || name == "listener.security.protocol.map" || name == "inter.broker.listener.name" {
			continue
		}
		compared++
		expect.Equal(t, *value, want, "%s, as in the tests", name)
	}
	expect.AtLeast(t, compared, 6, "settings")
}

// The settings of Cassandra must match those of the tests, except for addresses, sizes of caches, and timeouts.
func TestCompose_CassandraMatchesTestedSettings(t *testing.T) {
	_, text, _ := strings.Cut(readText(t, ".ci/servers/cassandra/run"), "<<YAML\n")
	text, _, found := strings.Cut(text, "\n$secured\nYAML\n")
	tested := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &tested); err != nil || !found {
		t.Fatalf("%v, %v", err, found)
	}
	project := loadProject(t)
	for _, name := range []string{"cassandra-primary", "cassandra-standby"} {
		got := map[string]any{}
		must.OK(t, yaml.Unmarshal([]byte(project.Configs[name].Content), &got))
		if seeds := got["seed_provider"].([]any)[0].(map[string]any)["parameters"].([]any)[0].(map[string]any)["seeds"]; seeds != name ||
			got["broadcast_rpc_address"] != name || got["cluster_name"] != "smartfeed-"+strings.TrimPrefix(name, "cassandra-") {
			t.Errorf("%s: the cluster name is not unique", name)
		}
		want := maps.Clone(tested)
		for _, own := range []string{"cluster_name", "seed_provider", "broadcast_rpc_address", "rpc_address", "listen_address",
			"storage_port", "native_transport_port", "key_cache_size", "file_cache_size", "networking_cache_size"} {
			delete(got, own)
			delete(want, own)
		}
		maps.DeleteFunc(want, func(setting string, _ any) bool { return strings.HasSuffix(setting, "_request_timeout") })
		expect.NoDiff(t, got, want, "%s, tested and composed", name)
		if !slices.ContainsFunc(project.Services[name].Configs, func(c types.ServiceConfigObjConfig) bool { return c.Source == name }) {
			t.Errorf("%s does not mount its settings", name)
		}
	}
}

// Each address in a service's settings must be the name and a port of another service.
func TestCompose_AddressesExist(t *testing.T) {
	services := loadProject(t).Services
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
				t.Errorf("%s: unknown service %s", name, m[0])
			} else if there && !listens(other, m[2]) {
				t.Errorf("%s: %s: %s does not listen on this port", name, m[0], m[1])
			}
		}
	}
	expect.AtLeast(t, found, 20, "addresses")
}

// listens reports whether a service listens on a port by its settings, or by default.
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

// goVersion returns the release of Go that builds the image. It must not be older than that of go.mod.
func goVersion(t *testing.T) string {
	t.Helper()
	wants := regexp.MustCompile(`(?m)^go (\S+)`).FindStringSubmatch(readText(t, "go.mod"))
	has := regexp.MustCompile(`golang:(\d+\.\d+\.\d+)-`).FindStringSubmatch(readText(t, "Dockerfile"))
	if wants == nil || has == nil || version.Compare("go"+has[1], "go"+wants[1]) < 0 {
		t.Fatalf("go.mod requires %s, the image is built with %s: want a full version that is not older", wants, has)
	}
	return has[1]
}

// The image must contain only the program and the C library that it was built with, run as nonroot, and take a command.
func TestDockerfile_IsMinimal(t *testing.T) {
	text := readText(t, "Dockerfile")
	for _, want := range []string{"FROM --platform=$BUILDPLATFORM golang:" + goVersion(t) + "-bookworm@sha256:", "-X github.com/smartfeed/smartfeed/app.version=${VERSION}", "CGO_ENABLED=1", "FROM gcr.io/distroless/base-nossl-debian12:nonroot@sha256:", "org.opencontainers.image.source=", "org.opencontainers.image.licenses=\"Apache-2.0\"", `ENTRYPOINT ["/smartfeed"]`, "--chown=nonroot:nonroot /data /data"} {
		expect.Contains(t, text, want, "the Dockerfile")
	}
}

// The default command of the image must be valid and listen on an address that published ports reach.
func TestDockerfile_DefaultCommandListensOnAllInterfaces(t *testing.T) {
	args := imageCommand(t)
	if i := slices.Index(args, "--http"); i < 0 || i+1 == len(args) || args[i+1] != "0.0.0.0:8080" || args[0] != "dev" {
		t.Errorf("the command is %q, want dev --http 0.0.0.0:8080", args)
	}
	settings := slices.DeleteFunc(args, func(arg string) bool { return arg == "--demo" })
	args = append(slices.Concat([]string{"config", "check"}, settings), "--dir", t.TempDir())
	run(t, "the image", nil, args...)
}
