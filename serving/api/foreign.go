package api

import (
	"net/http"

	"github.com/smartfeed/smartfeed/internal/foreign"
)

// rejectForeign rejects a request of another site's page if its method changes something.
func rejectForeign(r *http.Request) error {
	if foreign.Change(r) {
		return crossSite()
	}
	return nil
}

// rejectForeignVisit rejects a visit of another site's page. A visit changes something although it is a GET, and an image on
// any page is a GET. With authentication it accepts all visits: a browser does not add a bearer token on its own.
func (s *Server) rejectForeignVisit(r *http.Request) error {
	if s.deps.Auth == nil && foreign.Page(r) {
		return crossSite()
	}
	return nil
}

func crossSite() *Problem {
	return problem(http.StatusForbidden, "cross-site requests are not allowed")
}

// checkHost rejects requests by an unknown host name if authentication is disabled. Any site can make one of its names
// resolve to this machine. A browser then treats the server as a part of that site, and the site's pages could read every
// answer. The server's own names are Config.AllowedHosts.
func (s *Server) checkHost(r *http.Request) error {
	if s.deps.Auth != nil || !foreign.Name(r.Host, s.cfg.AllowedHosts...) {
		return nil
	}
	return problem(http.StatusForbidden, "host name %s is not allowed while authentication is disabled, because any site can make its own "+
		"name resolve to this machine; use 127.0.0.1 or localhost, add the name to api.allowed_hosts, or set auth.jwks or auth.secret_file", quote(r.Host))
}
