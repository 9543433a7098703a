// Package foreign tells what pages of other sites have a browser send to servers of this machine.
//
// A browser sends what a page asks for to any address that it reaches, this machine's included, and only keeps the answer
// from the page. And a site can point a name of its own at this machine (DNS rebinding): its pages then read the answers,
// too, but ask by that name. Servers that ask nobody who they are refuse both.
//
// The package imports nothing of the module, and every layer may import it.
package foreign

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// otherSites knows what pages of other sites have a browser send.
var otherSites = http.NewCrossOriginProtection()

// Change says whether the page of another site sends what changes something by its method.
func Change(r *http.Request) bool { return otherSites.Check(r) != nil }

// Page says whether the page of another site sends the request, whatever its method.
func Page(r *http.Request) bool {
	changing := r.WithContext(r.Context())
	changing.Method = http.MethodPost
	return Change(changing)
}

// Name reports whether a Host is a name, which any site could own, and neither an allowed one, nor an address, nor localhost,
// with or without a port (digits: RFC 3986, 3.2.3). No browser sends an empty one.
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
		return ip.Zone() != "" // it may be any text
	}
	isHost := func(name string) bool { return strings.EqualFold(host, name) }
	return host != "" && !isHost("localhost") && !slices.ContainsFunc(allowed, isHost)
}

// RefusePages answers 403 to what pages of other sites send; which of it counts is Change or Page.
func RefusePages(next http.Handler, counts func(*http.Request) bool) http.Handler {
	return refuse(next, counts, "pages of other sites may not send this")
}

// RefuseNames answers 403 to requests by a name that is not allowed.
func RefuseNames(next http.Handler, allowed ...string) http.Handler {
	return refuse(next, func(r *http.Request) bool { return Name(r.Host, allowed...) },
		"callers are not asked who they are here, so requests by a name are refused (any site can point a name of its own at "+
			"this machine): ask for 127.0.0.1 or localhost")
}

func refuse(next http.Handler, counts func(*http.Request) bool, why string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if counts(r) {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
