// Command web serves a page that shows a feed. It forwards the calls of the page to smartfeed:
//
//	go run ./examples/web        # http://127.0.0.1:8090/?user=user:ada
//
// A page cannot call smartfeed from another site: the API has no CORS headers and rejects cross-site requests, and only a
// service may publish events. This server trusts the user in the address. Yours takes the user from the session, checks that the
// user in the path and in each event is the same, and adds the token of a service.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

//go:embed index.html
var page []byte

func main() {
	address := flag.String("http", "127.0.0.1:8090", "address of the page")
	smartfeed := flag.String("smartfeed", "http://127.0.0.1:8080", "URL of smartfeed")
	flag.Parse()
	api, err := url.Parse(*smartfeed)
	if err == nil {
		err = http.ListenAndServe(*address, handler(api))
	}
	fmt.Fprintln(os.Stderr, "web:", err)
	os.Exit(1)
}

// handler serves the page, and forwards only the calls that it needs. ReverseProxy keeps Host and Sec-Fetch-Site, so smartfeed
// rejects requests of other sites.
func handler(api *url.URL) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline'; img-src data:")
		_, _ = w.Write(page) // fails only if the client has disconnected
	})
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api); r.Out.Host = r.In.Host }}
	mux.Handle("POST /v1/users/{user}/visits", proxy)
	mux.Handle("GET /v1/users/{user}/feed", proxy)
	mux.Handle("GET /v1/users/{user}/feed/events", proxy)
	mux.Handle("POST /v1/events", proxy)
	return mux
}
