// Package foreign detects requests to this server that a browser sends for a page of another site.
//
// A browser sends the requests of a page to any address that it can reach, including addresses of this machine, and only
// withholds the response from the page. A site can also make its own name resolve to this machine (DNS rebinding). Its
// pages can then read the responses, too, but their requests have that name as Host. Servers without authentication
// reject both.
package foreign

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// otherSites detects cross-origin requests.
var otherSites = http.NewCrossOriginProtection()

// Change reports whether a page of another site sent the request and its method is not safe (GET, HEAD, OPTIONS).
func Change(r *http.Request) bool { return otherSites.Check(r) != nil }

// Page reports whether a page of another site sent the request, whatever its method.
func Page(r *http.Request) bool {
	changing := r.WithContext(r.Context())
	changing.Method = http.MethodPost
	return Change(changing)
}

// Name reports whether a Host is a name that any site could own. Addresses, localhost and allowed names are not, with or
// without a port (digits: RFC 3986, 3.2.3). An empty Host is not, either: no browser sends it.
func Name(host string, allowed ...string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if strings.Trim(port, "0123456789") != "" {
			return true
		}
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip, err := netip.ParseAddr(host)
	if err == nil {
		return ip.Zone() != "" // a zone can be any text
	}
	isHost := func(name string) bool { return strings.EqualFold(host, name) }
	return host != "" && !isHost("localhost") && !slices.ContainsFunc(allowed, isHost)
}

// RefusePages responds with 403 to requests from pages of other sites. matches is Change or Page.
func RefusePages(next http.Handler, matches func(*http.Request) bool) http.Handler {
	return refuse(next, matches, "cross-site requests are not allowed")
}

// RefuseNames responds with 403 to requests with a host name that is not allowed.
func RefuseNames(next http.Handler, allowed ...string) http.Handler {
	return refuse(next, func(r *http.Request) bool { return Name(r.Host, allowed...) },
		"requests by host name are not allowed while authentication is disabled, because any site can make its name "+
			"resolve to this machine: use 127.0.0.1 or localhost")
}

func refuse(next http.Handler, matches func(*http.Request) bool, why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if matches(r) {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
