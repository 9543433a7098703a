package deploy

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// eachPod calls f with each pod of each installation.
func eachPod(t *testing.T, f func(*testing.T, pod)) {
	t.Helper()
	for name, values := range installations(t) {
		for _, p := range pods(objects(t, values)) {
			t.Run(name+"/"+p.name, func(t *testing.T) { f(t, p) })
		}
	}
}

// Every pod must satisfy the level "restricted" of the Pod Security Standards, have a read-only root file system, and no access to
// the Kubernetes API.
func TestChart_PodsAreRestricted(t *testing.T) {
	eachPod(t, func(t *testing.T, p pod) {
		s := p.spec.SecurityContext
		if s == nil || !isTrue(s.RunAsNonRoot) || s.RunAsUser == nil || *s.RunAsUser == 0 || s.FSGroup == nil ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("security context %+v: want a user other than root, its group for volumes, and the runtime's seccomp profile", s)
		}
		if p.spec.AutomountServiceAccountToken == nil || *p.spec.AutomountServiceAccountToken || p.spec.HostNetwork || p.spec.HostPID || p.spec.HostIPC {
			t.Error("the pod has a token of its service account, or a namespace of the host")
		}
		for _, c := range p.containers() {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !isTrue(s.ReadOnlyRootFilesystem) ||
				s.Privileged != nil || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || s.Capabilities.Add != nil {
				t.Errorf("%s: the container can gain privileges or write to its root file system", c.Name)
			}
		}
		for _, v := range p.spec.Volumes {
			if v.Secret != nil && (v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o440) {
				t.Errorf("%s: other users can read the secret", v.Name)
			}
		}
	})
}

func isTrue(b *bool) bool { return b != nil && *b }

// Every container must have a pinned image, and resources with a hard memory limit.
func TestChart_ContainersHaveResourcesAndPinnedImage(t *testing.T) {
	pinned := regexp.MustCompile(`^ghcr\.io/smartfeed/smartfeed(:\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$`)
	eachPod(t, func(t *testing.T, p pod) {
		for _, c := range p.containers() {
			expect.True(t, pinned.MatchString(c.Image), "%s: image %s has a full version or a digest", c.Name, c.Image)
			memory := c.Resources.Limits.Memory()
			if memory.IsZero() || !memory.Equal(*c.Resources.Requests.Memory()) || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: resources %+v: want CPU, and memory with an equal limit", c.Name, c.Resources)
			}
		}
	})
}

// GOMEMLIMIT plus the memory of Pebble outside the Go heap must be below the memory limit.
func TestChart_GoMemoryLimitFitsContainer(t *testing.T) {
	const binary = 64 << 20 // pages of the binary, and C stacks
	rows := app.DefaultConfig().Rows
	roles := 0
	eachPod(t, func(t *testing.T, p pod) {
		for _, c := range p.spec.Containers {
			limit := variable(c, "GOMEMLIMIT")
			if limit == "" {
				continue
			}
			roles++
			goHeap := must.Get(resource.ParseQuantity(strings.TrimSuffix(limit, "B")))(t)
			needed := goHeap.Value() + binary
			if c.Args[0] == "process" || c.Args[0] == "dev" {
				needed += int64(rows.BlockCacheBytes + rows.MemTableBytes)
			}
			expect.AtMost(t, needed, c.Resources.Limits.Memory().Value(), "needed bytes")
		}
	})
	expect.Equal(t, roles, 9, "containers with GOMEMLIMIT")
}

// variable returns the value of an environment variable of a container.
func variable(c core.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// Probes must request paths that need no token, with the scheme of the API, and a stopping pod must get more time than a process needs.
func TestChart_ProbesAndShutdown(t *testing.T) {
	for name, values := range installations(t) {
		scheme := core.URISchemeHTTP
		if strings.Contains(values, "cert_file") {
			scheme = core.URISchemeHTTPS
		}
		for _, set := range only[*apps.StatefulSet](objects(t, values)) {
			c := set.Spec.Template.Spec.Containers[0]
			for probe, path := range map[*core.Probe]string{c.StartupProbe: "/healthz", c.LivenessProbe: "/healthz", c.ReadinessProbe: "/readyz"} {
				if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Scheme != scheme || probe.HTTPGet.Port.StrVal != c.Ports[0].Name {
					t.Errorf("%s/%s: probe %+v, want %s over %s", name, set.Name, probe, path, scheme)
				}
			}
			grace := time.Duration(*set.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
			if c.Lifecycle != nil {
				grace -= time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
			}
			expect.True(t, grace > app.ShutdownTimeout, "%s/%s: a process has %s to stop, more than %s", name, set.Name, grace, app.ShutdownTimeout)
		}
	}
}

// Each pod must advertise its name in a headless Service that selects exactly the pods of its role, also while they are not ready, at
// the port on which it listens.
func TestChart_PeersFindEachPod(t *testing.T) {
	for name, values := range installations(t) {
		all := objects(t, values)
		for _, set := range only[*apps.StatefulSet](all) {
			s, c := service(t, all, set.Spec.ServiceName), set.Spec.Template.Spec.Containers[0]
			_, port, _ := strings.Cut(variable(c, "SMARTFEED_HTTP"), ":")
			want := fmt.Sprintf("$(POD_NAME).%s.%s.svc:%s", s.Name, namespace, port)
			expect.Equal(t, variable(c, "SMARTFEED_ADVERTISE"), want, "%s/%s: advertised address", name, set.Name)
			if s.Spec.ClusterIP != core.ClusterIPNone || !s.Spec.PublishNotReadyAddresses || fmt.Sprint(c.Ports[0].ContainerPort) != port ||
				s.Spec.Ports[0].Port != c.Ports[0].ContainerPort || s.Spec.Ports[0].TargetPort.StrVal != c.Ports[0].Name {
				t.Errorf("%s/%s: %+v is not a headless Service of port %s", name, set.Name, s.Spec, port)
			}
			got := selected(labels.SelectorFromSet(s.Spec.Selector), pods(all))
			expect.NoDiff(t, got, []string{set.Name}, "%s: selected by the Service %s", name, s.Name)
			got = selected(must.Get(meta.LabelSelectorAsSelector(set.Spec.Selector))(t), pods(all))
			expect.NoDiff(t, got, []string{set.Name}, "%s: selected by the StatefulSet %s", name, set.Name)
			expect.AtMost(t, len(set.Name)+len("-0123456789"), 63, "%s: length of the label controller-revision-hash of %s", name, set.Name)
		}
	}
}

func service(t *testing.T, all []runtime.Object, name string) *core.Service {
	t.Helper()
	for _, s := range only[*core.Service](all) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no Service %s", name)
	return nil
}

// selected returns the names of the selected pods.
func selected(selector labels.Selector, all []pod) (names []string) {
	for _, p := range all {
		if selector.Matches(labels.Set(p.labels)) {
			names = append(names, p.name)
		}
	}
	return names
}

// The Service of the API must select only pods that serve it, and a disruption budget must cover each role.
func TestChart_ServicesAndBudgetsSelectPods(t *testing.T) {
	for name, role := range map[string]string{"minimal": "smartfeed-serve", "production": "smartfeed-serve", "dev": "smartfeed-dev"} {
		all := objects(t, installations(t)[name])
		got := selected(labels.SelectorFromSet(service(t, all, "smartfeed").Spec.Selector), pods(all))
		expect.NoDiff(t, got, []string{role}, "%s: selected by the Service of the API", name)
		for _, budget := range only[*policy.PodDisruptionBudget](all) {
			got := selected(must.Get(meta.LabelSelectorAsSelector(budget.Spec.Selector))(t), pods(all))
			expect.NoDiff(t, got, []string{budget.Name}, "%s: pods of the budget", name)
			expect.Equal(t, budget.Spec.MaxUnavailable.IntValue(), 1, "%s: unavailable pods of %s", name, budget.Name)
		}
	}
}

// Prometheus must scrape each pod once, with the token and the labels that the alerts and the dashboard use.
func TestChart_ServiceMonitorSelectsHeadlessServices(t *testing.T) {
	all := objects(t, installations(t)["production"])
	monitor := only[*monitoring.ServiceMonitor](all)[0].Spec
	selector := must.Get(meta.LabelSelectorAsSelector(&monitor.Selector))(t)
	for _, s := range only[*core.Service](all) {
		expect.Equal(t, selector.Matches(labels.Set(s.Labels)), s.Spec.ClusterIP == core.ClusterIPNone, "%s: selected", s.Name)
	}
	endpoint := monitor.Endpoints[0]
	if endpoint.Path != "/metrics" || endpoint.Port != "http" || endpoint.Scheme == nil || *endpoint.Scheme != "https" {
		t.Errorf("the endpoint is %+v, want https and /metrics", endpoint)
	}
	if token := endpoint.Authorization.Credentials; secret(t, token.Name)[token.Key] == "" {
		t.Errorf("there is no token %s/%s", token.Name, token.Key)
	}
	relabeled := map[string]string{}
	for _, r := range endpoint.RelabelConfigs {
		relabeled[r.TargetLabel] = *cmp.Or(r.Replacement, new(string)) + joined(r.SourceLabels)
	}
	want := map[string]string{"job": "smartfeed", "role": "__meta_kubernetes_service_label_app_kubernetes_io_component"}
	expect.NoDiff(t, relabeled, want, "labels")
}

func joined(names []monitoring.LabelName) (all string) {
	for _, name := range names {
		all += string(name)
	}
	return all
}

// The chart must install the alerts and the dashboards of deploy/monitoring.
func TestChart_InstallsAlertsAndDashboard(t *testing.T) {
	all := objects(t, installations(t)["production"])
	var want monitoring.PrometheusRuleSpec
	must.OK(t, yaml.UnmarshalStrict([]byte(read(t, "deploy/monitoring/alerts.yml")), &want))
	expect.NoDiff(t, only[*monitoring.PrometheusRule](all)[0].Spec, want, "alerts (-file +chart)")
	expect.AtLeast(t, len(want.Groups[0].Rules), 20, "alerts")
	installed := 0
	for _, m := range only[*core.ConfigMap](all) {
		if _, is := m.Data["smartfeed.json"]; !is {
			continue
		}
		installed++
		for _, name := range []string{"smartfeed.json", "servers.json"} {
			dashboard := read(t, "deploy/monitoring/grafana/"+name)
			expect.Equal(t, strings.TrimSpace(m.Data[name]), strings.TrimSpace(dashboard), "the dashboard %s", name)
		}
		expect.Equal(t, m.Labels["grafana_dashboard"], "1", "label by which the sidecar of Grafana finds dashboards")
	}
	expect.Equal(t, installed, 1, "ConfigMaps with dashboards")
}
