package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/smartfeed/smartfeed/internal/cli"
	"github.com/smartfeed/smartfeed/internal/testkit/expect"
	"github.com/smartfeed/smartfeed/internal/testkit/must"
	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
)

// The configuration, the files and the command of each container must be valid.
func TestChart_ConfigurationIsValid(t *testing.T) {
	checked := 0
	for name, values := range installations(t) {
		all := objects(t, values)
		for _, p := range pods(all) {
			for _, c := range p.containers() {
				checked++
				t.Run(fmt.Sprint(name, "/", p.name, "/", c.Name), func(t *testing.T) { checkContainer(t, all, p, c) })
			}
		}
	}
	expect.AtLeast(t, checked, 15, "containers")
}

// checkContainer runs `config check` as in a container, and the help of the container's command.
func checkContainer(t *testing.T, all []runtime.Object, p pod, c core.Container) {
	root := t.TempDir()
	for _, m := range c.VolumeMounts {
		mount(t, root, m, p, all)
	}
	check, command := []string{"config", "check"}, strings.Join(c.Args, " ")
	if isRole := len(p.spec.InitContainers) == 0; isRole {
		check, command = append(check, c.Args[0]), c.Args[0]
	}
	for _, args := range [][]string{check, append(slices.Clone(c.Args), "--help")} {
		var out, problems strings.Builder
		code := cli.Execute(t.Context(), args, environ(root, p, c), strings.NewReader(""), &out, &problems)
		if code != 0 || args[0] != "config" && !strings.Contains(out.String(), "smartfeed "+command) {
			t.Errorf("%q: exit code %d: %s", args, code, &problems)
		}
	}
}

// environ returns the variables of a container whose files are below root.
func environ(root string, p pod, c core.Container) (vars []string) {
	for _, v := range c.Env {
		vars = append(vars, v.Name+"="+below(root, strings.ReplaceAll(v.Value, "$(POD_NAME)", p.name+"-0")))
	}
	return vars
}

// below moves the paths in a text below root.
func below(root, text string) string {
	return strings.NewReplacer("/etc/smartfeed/", root+"/etc/smartfeed/", "/data", root+"/data").Replace(text)
}

// mount writes the files of a volume below root.
func mount(t *testing.T, root string, m core.VolumeMount, p pod, all []runtime.Object) {
	t.Helper()
	dir := filepath.Join(root, m.MountPath)
	must.OK(t, os.MkdirAll(dir, 0o700))
	if slices.ContainsFunc(p.claims, func(c core.PersistentVolumeClaim) bool { return c.Name == m.Name }) {
		return
	}
	i := slices.IndexFunc(p.spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
	if i < 0 {
		t.Fatalf("there is no volume %s", m.Name)
	}
	for name, text := range files(t, p.spec.Volumes[i], all) {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(below(root, text)), 0o600))
	}
}

// files returns the files of a volume by name.
func files(t *testing.T, v core.Volume, all []runtime.Object) map[string]string {
	t.Helper()
	switch {
	case v.ConfigMap != nil:
		maps := only[*core.ConfigMap](all)
		i := slices.IndexFunc(maps, func(m *core.ConfigMap) bool { return m.Name == v.ConfigMap.Name })
		if i < 0 {
			t.Fatalf("volume %s: there is no ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
		return maps[i].Data
	case v.Secret != nil:
		return secret(t, v.Secret.SecretName)
	case v.EmptyDir == nil:
		t.Fatalf("volume %s: unexpected kind", v.Name)
	}
	return nil
}

// secret returns the contents of the Secrets of values-production.yaml, by key.
func secret(t *testing.T, name string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certificates")
	must.OK(t, securetest.Write(dir))
	file := func(name string) string { return read(t, filepath.Join(dir, name)) }
	random := strings.Repeat("0123456789abcdef", 4)
	switch name {
	case "smartfeed":
		return map[string]string{
			"kafka-ca.pem": file(securetest.CA), "kafka.password": "p", "kafka-operate.password": "p", "registry.password": "p",
			"cassandra.password": "p", "pinot.token": "t", "peers.secret": random, "scrape.token": random, "cursor.key": random,
		}
	case "smartfeed-tls":
		return map[string]string{"tls.crt": file(securetest.Client), "tls.key": file(securetest.Key), "ca.crt": file(securetest.CA)}
	}
	t.Fatalf("there is no Secret %s", name)
	return nil
}
