package deploy

import (
	"cmp"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// minimal has the values without a default.
const minimal = `
config:
  kafka: [kafka:9092]
  registry: http://registry:8080
  partitions: 16
  api: {insecure: true}
  peers: {insecure: true}
  feed_store: {cassandra: {primary: {hosts: [cassandra:9042]}}}
  feed: {cursor_key_file: /etc/smartfeed/secrets/smartfeed/cursor.key}
secrets: [smartfeed]
`

// variants has values of all kinds that the examples do not have.
const variants = `
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
fullnameOverride: a-name-that-is-too-long-for-the-labels-of-its-pods
config:
  kafka: [kafka:9092]
  registry: http://registry:8080
  partitions: 16
  api: {insecure: true}
  peers: {insecure: true}
  feature: {max_actions: 1000000}
features: |
  features:
    - {name: saves, entity: user, aggregate: count, window: 24h, verbs: [save]}
process:
  args: [pools, fanout]
  podSpec: {nodeSelector: {disk: fast}, topologySpreadConstraints: []}
materialize: {replicas: 0}
serve: {replicas: 1, volume: {size: ""}}
service: {type: LoadBalancer, port: 80, annotations: {example.com/internal: "true"}}
setup: {enabled: false}
`

// installations returns the values that the tests render, by name.
func installations(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"minimal": minimal, "variants": variants, "dev": read(t, chartDir+"/values-dev.yaml"), "production": read(t, chartDir+"/values-production.yaml"),
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(file))(t))
}

const (
	chartDir  = "deploy/helm/smartfeed"
	namespace = "feeds"
)

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	return must.Get(loader.Load(chartDir))(t)
}

// render renders the chart as `helm install smartfeed` does, by template. It fails on undefined values.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	c, given := loadChart(t), must.Get(chartutil.ReadValues([]byte(values)))(t)
	release := chartutil.ReleaseOptions{Name: "smartfeed", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, given, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, all)
}

// objects renders the chart and decodes its objects strictly: unknown and duplicate fields are errors.
func objects(t *testing.T, values string) []runtime.Object {
	t.Helper()
	types := runtime.NewScheme()
	must.OK(t, scheme.AddToScheme(types))
	must.OK(t, monitoring.AddToScheme(types))
	decoder := serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	var decoded []runtime.Object
	for name, text := range must.Get(render(t, values))(t) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, _, err := decoder.Decode([]byte(document), nil, nil)
			must.OK(t, err)
			decoded = append(decoded, object)
		}
	}
	slices.SortFunc(decoded, func(a, b runtime.Object) int { return cmp.Compare(identity(a), identity(b)) })
	return decoded
}

// identity returns kind and name of an object.
func identity(object runtime.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + "/" + object.(meta.Object).GetName()
}

// only returns the objects of a type.
func only[T runtime.Object](all []runtime.Object) (found []T) {
	for _, object := range all {
		if one, is := object.(T); is {
			found = append(found, one)
		}
	}
	return found
}

// pod is the pod template of a StatefulSet or Job.
type pod struct {
	name   string
	labels map[string]string
	notes  map[string]string // annotations
	spec   core.PodSpec
	claims []core.PersistentVolumeClaim
}

func pods(all []runtime.Object) (found []pod) {
	for _, set := range only[*apps.StatefulSet](all) {
		found = append(found, newPod(set.Name, set.Spec.Template, set.Spec.VolumeClaimTemplates))
	}
	for _, job := range only[*batch.Job](all) {
		found = append(found, newPod(job.Name, job.Spec.Template, nil))
	}
	return found
}

func newPod(name string, template core.PodTemplateSpec, claims []core.PersistentVolumeClaim) pod {
	return pod{name, template.Labels, template.Annotations, template.Spec, claims}
}

func (p pod) containers() []core.Container {
	return slices.Concat(p.spec.InitContainers, p.spec.Containers)
}

// Each installation must have exactly these objects.
func TestChart_RendersObjects(t *testing.T) {
	const name = "a-name-that-is-too-long-for-the-labels-o"
	role := func(name string) []string {
		return []string{"PodDisruptionBudget/" + name, "Service/" + name, "StatefulSet/" + name}
	}
	roles := slices.Concat(role("smartfeed-process"), role("smartfeed-materialize"), role("smartfeed-serve"),
		[]string{"ConfigMap/smartfeed", "Service/smartfeed", "ConfigMap/smartfeed-setup", "Job/smartfeed-setup"})
	want := map[string][]string{
		"minimal":    roles,
		"production": append(slices.Clone(roles), "ServiceMonitor/smartfeed", "PrometheusRule/smartfeed", "ConfigMap/smartfeed-dashboard"),
		"dev":        append(role("smartfeed-dev"), "ConfigMap/smartfeed", "Service/smartfeed"),
		"variants":   slices.Concat(role(name+"-process"), role(name+"-serve"), []string{"ConfigMap/" + name, "Service/" + name}),
	}
	for installation, values := range installations(t) {
		var got []string
		for _, object := range objects(t, values) {
			got = append(got, identity(object))
		}
		slices.Sort(want[installation])
		expect.NoDiff(t, got, want[installation], "%s", installation)
	}
}

// Values that would result in an installation that does not work must be rejected.
func TestChart_RejectsInvalidValues(t *testing.T) {
	for values, problem := range map[string]string{
		"{replica: 3}":                        "'replica' not allowed",
		"{process: {replicas: two}}":          "/process/replicas",
		"{image: {digest: latest}}":           "/image/digest",
		"{monitoring: {rules: {enabled: 1}}}": "/monitoring/rules/enabled",
		"{}":                                  "config.kafka",
		"{config: {kafka: []}}":               "config.kafka",
		"{config: {kafka: [a:1]}}":            "config.feed.cursor_key_file",
		"{config: {kafka: [a:1]}, serve: {replicas: 1}}":                         "",
		"{config: {kafka: [a:1]}, serve: {replicas: 1}, dev: {replicas: 2}}":     "dev.replicas",
		"{config: {kafka: [a:1], http: 'a:1'}, serve: {replicas: 1}}":            "config.http",
		"{config: {kafka: [a:1], dir: /tmp}, serve: {replicas: 1}}":              "config.dir",
		"{config: {kafka: [a:1], advertise: 'a:1'}, serve: {replicas: 1}}":       "config.advertise",
		"{config: {kafka: [a:1], features_file: 'f'}, serve: {replicas: 1}}":     "config.features_file",
		"{config: {kafka: [a:1]}, serve: {replicas: 1}, service: {nodePort: 1}}": "'nodePort' not allowed",
	} {
		expect.Error(t, expect.ErrorOf(render(t, values)), problem, "%s", values)
	}
}

// The chart must accept the oldest Kubernetes release that has all of its fields, and no older one.
func TestChart_RequiresKubernetesWithPreStopSleep(t *testing.T) {
	required := loadChart(t).Metadata.KubeVersion
	for release, want := range map[string]bool{"v1.29.14": false, "v1.30.0": true, "v1.35.2-gke.1": true} {
		expect.Equal(t, chartutil.IsCompatibleRange(required, release), want, "%s", release)
	}
}

// A changed configuration must restart the pods. Changes that smartfeed reloads must not.
func TestChart_RestartsPodsOnlyForConfig(t *testing.T) {
	checksum := func(values string) string { return pods(objects(t, values))[0].notes["checksum/config"] }
	before := checksum(variants)
	if after := checksum(strings.Replace(variants, "name: saves", "name: kept", 1)); after != before || before == "" {
		t.Errorf("changed features: the checksum is %q, want %q", after, before)
	}
	if after := checksum(strings.Replace(variants, "partitions: 16", "partitions: 16\n  verbs: {dance: 1}\n  generator: {feeds: {home: {share_window: 50}}}", 1)); after != before {
		t.Errorf("changed verbs and feeds, which are reloaded: the checksum is %q, want %q", after, before)
	}
	expect.True(t, checksum(strings.Replace(variants, "partitions: 16", "partitions: 32", 1)) != before, "a changed config changes it")
}
