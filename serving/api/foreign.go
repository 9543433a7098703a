package api

import (
	"net/http"

	"github.com/smartfeed/smartfeed/internal/foreign"
)

// notForeign refuses what changes something, by its method, and was sent by another site's page.
func notForeign(r *http.Request) error {
	if foreign.Change(r) {
		return fromOtherSite()
	}
	return nil
}

// notForeignVisit does the same for a visit: it changes something although it is a GET, which an image on any page is.
// Who has to send a token is no such page: a browser adds none by itself.
func (s *Server) notForeignVisit(r *http.Request) error {
	if s.deps.Auth == nil && foreign.Page(r) {
		return fromOtherSite()
	}
	return nil
}

func fromOtherSite() *Problem {
	return problem(http.StatusForbidden, "pages of other sites may not send this")
}

// notRenamed refuses, where nobody is asked who they are, who asks by a name: any site can point one of its own at this
// machine, and a browser then takes the server for a part of that site, whose pages may read every answer. The server's own names are Config.AllowedHosts.
func (s *Server) notRenamed(r *http.Request) error {
	if s.deps.Auth != nil || !foreign.Name(r.Host, s.cfg.AllowedHosts...) {
		return nil
	}
	return problem(http.StatusForbidden, "callers are not asked who they are here, so requests by the name %s are refused (any site can point "+
		"a name of its own at this machine): ask for 127.0.0.1 or localhost, add the name to api.allowed_hosts, or set auth.jwks or auth.secret_file", quote(r.Host))
}
