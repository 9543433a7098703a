package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// otherSites knows what pages of other sites have a browser send.
var otherSites = http.NewCrossOriginProtection()

// notForeign refuses what changes something, by its method, and was sent by another site's page.
func notForeign(r *http.Request) error {
	if err := otherSites.Check(r); err != nil {
		return problem(http.StatusForbidden, "pages of other sites may not send this")
	}
	return nil
}

// notForeignVisit does the same for a visit: it changes something although it is a GET, which an image on any page is.
// Who has to send a token is no such page: a browser adds none by itself.
func (s *Server) notForeignVisit(r *http.Request) error {
	if s.deps.Auth != nil {
		return nil
	}
	changing := r.WithContext(r.Context())
	changing.Method = http.MethodPost
	return notForeign(changing)
}

// notRenamed refuses, where nobody is asked who they are, who asks by a name: any site can have one of its own lead to this
// machine, and a browser then takes the server for a part of that site, whose pages may read every answer. What guards the
// server otherwise knows its names; this program does not.
func (s *Server) notRenamed(r *http.Request) error {
	if s.deps.Auth != nil || s.cfg.Insecure || ofThisMachine(r.Host) {
		return nil
	}
	return problem(http.StatusForbidden, "nobody is asked who they are here, and so nothing is answered by the name %s, which any site "+
		"could have lead here: ask for 127.0.0.1 or localhost, or set auth.jwks or auth.secret_file, or api.insecure if something "+
		"else guards the address", quote(r.Host))
}

// ofThisMachine says whether a Host is an address or localhost, with or without a port. No browser sends an empty one.
func ofThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	_, err := netip.ParseAddr(host)
	return err == nil || host == "" || strings.EqualFold(host, "localhost")
}
