package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/smartfeed/smartfeed/serving/web"
)

// The console in another server, next to the routes of package api that it needs. A page is revalidated each time and
// sent only if it has changed.
func ExampleHandler() {
	console, err := web.Handler()
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", console)

	request := func(etag string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Result()
	}
	first := request("")
	fmt.Println(first.StatusCode, first.Header.Get("Content-Type"))
	fmt.Println(request(first.Header.Get("ETag")).StatusCode)
	// Output:
	// 200 text/html; charset=utf-8
	// 304
}
