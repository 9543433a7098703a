package test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// serverQueries returns the queries of the dashboard of Kafka and Cassandra by panel, for all jobs and nodes.
func serverQueries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	must.OK(t, json.Unmarshal([]byte(readText(t, "deploy/monitoring/grafana/servers.json")), &dashboard))
	found := map[string]string{}
	all := strings.NewReplacer("$job", ".*", "$instance", ".*", "$__rate_interval", "5m")
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			found[fmt.Sprint(p.ID, " ", p.Title, " ", target.RefID)] = all.Replace(target.Expr)
		}
	}
	return found
}

// The rules of the JMX exporter create the metrics of the dashboard, and no others.
func TestServersDashboard_UsesMetricsOfRules(t *testing.T) {
	unused := map[string]bool{}
	for _, server := range []string{"kafka", "cassandra"} {
		var file struct{ Rules []struct{ Name string } }
		must.OK(t, yaml.Unmarshal([]byte(readText(t, "deploy/monitoring/jmx/"+server+".yml")), &file))
		for _, r := range file.Rules {
			unused[r.Name] = true
		}
	}
	rules := maps.Clone(unused)
	for panel, query := range serverQueries(t) {
		for _, m := range regexp.MustCompile(`(\w+){`).FindAllStringSubmatch(query, -1) {
			delete(unused, m[1])
			if ofAgent := strings.HasPrefix(m[1], "jvm_") || strings.HasPrefix(m[1], "process_"); !ofAgent && !rules[m[1]] {
				t.Errorf("panel %s: no rule creates %s", panel, m[1])
			}
		}
	}
	expect.Empty(t, slices.Sorted(maps.Keys(unused)), "rules that no panel shows")
	expect.AtLeast(t, len(rules), 25, "rules")
}

// docker-compose.jmx.yml adds the tested agent, with its checksum, to the tested servers. Prometheus scrapes each of them.
func TestCompose_JMXAddsAgentToServers(t *testing.T) {
	base, project := loadProject(t), loadProject(t, "docker-compose.jmx.yml")
	agent := "jmx_prometheus_javaagent"
	version := versions(t, "jmx")[agent]
	sum, _, _ := strings.Cut(readText(t, ".ci/servers/jmx/sha256"), " ")
	add := fmt.Sprintf("\nADD --chmod=444 --checksum=sha256:%s https://repo1.maven.org/maven2/io/prometheus/jmx/%s/%s/%[2]s-%[3]s.jar /opt/jmx.jar\n", sum, agent, version)
	const option = "-javaagent:/opt/jmx.jar=9404:/etc/smartfeed/jmx.yml"
	for name, variable := range map[string]string{"kafka": "KAFKA_OPTS", "cassandra-primary": "JVM_EXTRA_OPTS", "cassandra-standby": "JVM_EXTRA_OPTS"} {
		s := project.Services[name]
		if want := "FROM " + base.Services[name].Image + add; s.Build == nil || s.Build.DockerfileInline != want || s.Image == base.Services[name].Image {
			t.Errorf("%s: image %s, build %+v, want another image with\n%s", name, s.Image, s.Build, want)
		}
		before := ""
		if value := base.Services[name].Environment[variable]; value != nil {
			before = *value + " "
		}
		expect.Equal(t, *s.Environment[variable], before+option, "%s: %s", name, variable)
		server, _, _ := strings.Cut(name, "-")
		expect.True(t, mounts(s, "deploy/monitoring/jmx/"+server+".yml", "/etc/smartfeed/jmx.yml"), "%s mounts its rules: %v", name, s.Volumes)
		expect.Contains(t, readText(t, "deploy/monitoring/servers.yml"), name+":9404", "targets of Prometheus")
	}
	if check := project.Services["kafka"].HealthCheck.Test; !slices.Equal(check[1:4], []string{"env", "-u", "KAFKA_OPTS"}) || !slices.Equal(check[4:], base.Services["kafka"].HealthCheck.Test[1:]) {
		t.Errorf("the health check of Kafka is %q: the agent of a second JVM cannot bind its port", check)
	}
	if !mounts(project.Services["prometheus"], "deploy/monitoring/servers.yml", "/etc/prometheus/servers.yml") || !mounts(project.Services["grafana"], "deploy/monitoring/grafana/servers.json", "/etc/smartfeed/servers.json") {
		t.Error("Prometheus or Grafana do not mount their files")
	}
	expect.Contains(t, readText(t, "deploy/monitoring/prometheus.yml"), "\nscrape_config_files: [servers.yml]", "prometheus.yml")
	if light := loadProject(t, "docker-compose.jmx.yml", "docker-compose.light.yml"); len(light.Services) != len(loadProject(t, "docker-compose.light.yml").Services) {
		t.Errorf("with docker-compose.light.yml, there are the services %v", slices.Sorted(maps.Keys(light.Services)))
	}
}

func mounts(s types.ServiceConfig, source, target string) bool {
	return slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return strings.HasSuffix(v.Source, source) && v.Target == target && v.ReadOnly
	})
}

// Each panel has data of a real broker and a real node, which `make test-monitoring` starts with the agent.
func TestServersDashboard_PanelsHaveDataOfRealServers(t *testing.T) {
	addresses := strings.Split(os.Getenv("SMARTFEED_TEST_JMX"), ",")
	if len(addresses) != 4 {
		t.Skip("set SMARTFEED_TEST_JMX to the addresses of Kafka and Cassandra and of their metrics")
	}
	environ := []string{
		"SMARTFEED_KAFKA=" + addresses[0], "SMARTFEED_PARTITIONS=2", "SMARTFEED_FEED_STORE_CASSANDRA_PRIMARY_HOSTS=" + addresses[1],
		"SMARTFEED_FEED_STORE_CASSANDRA_PRIMARY_REPLICAS=1", "SMARTFEED_DIR=" + t.TempDir(),
	}
	for _, args := range [][]string{{"topics", "apply"}, {"feed-store", "apply"}} {
		run(t, "the servers", environ, args...)
	}
	exchange(t, addresses[0])
	var all metrics
	for i, server := range []string{"kafka", "cassandra"} {
		now := scrape(t, addresses[2+i])
		for key, s := range now {
			s.Metric = labels.NewBuilder(s.Metric).Set("instance", server).Labels()
			now[key] = s
		}
		all = append(all, between(now, now)...)
	}
	queries := serverQueries(t)
	for panel, query := range queries {
		expect.AtLeast(t, len(all.evaluate(t, query, all.last())), 1, "panel %s: data of %s", panel, query)
	}
	expect.AtLeast(t, len(queries), 30, "queries")
	for _, query := range []string{`kafka_records_total{topic="actions"} > 0`, `cassandra_table_size_bytes{table="feeds"}`} {
		expect.AtLeast(t, len(all.evaluate(t, query, all.last())), 1, "data of %s", query)
	}
}

// exchange writes a record in a transaction, and reads it.
func exchange(t *testing.T, broker string) {
	t.Helper()
	c := must.Get(kgo.NewClient(kgo.SeedBrokers(broker), kgo.TransactionalID("test"), kgo.ConsumeTopics("actions")))(t)
	defer c.Close()
	must.OK(t, c.BeginTransaction())
	must.OK(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "actions", Value: []byte("x")}).FirstErr())
	must.OK(t, c.EndTransaction(t.Context(), kgo.TryCommit))
	must.OK(t, c.PollRecords(t.Context(), 1).Err())
}
