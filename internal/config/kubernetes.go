package config

import (
	"regexp"
	"slices"
	"strings"
)

// serviceLink matches the variables that Kubernetes adds to every pod for each Service of the namespace whose name
// starts with smartfeed, in the form of Docker links. The pattern includes the value, because Kubernetes does not set
// SMARTFEED_PORT=8080; a user does.
var serviceLink = regexp.MustCompile(`^` + EnvPrefix + `([A-Z0-9_]+_)?(` +
	`SERVICE_HOST=|SERVICE_PORT(_[A-Z0-9_]+)?=\d+$|` +
	`PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=)`)

func isServiceLink(kv string) bool { return serviceLink.MatchString(kv) }

// ServiceLinks returns the names of the variables that Load ignores because Kubernetes sets them for a Service whose
// name starts with smartfeed, sorted.
func ServiceLinks(environ []string) []string {
	var names []string
	for _, kv := range environ {
		if isServiceLink(kv) {
			name, _, _ := strings.Cut(kv, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
