package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/smartfeed/smartfeed/serving/web"
)

// The console in another server, next to the routes of package api that it needs.
func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("GET /", web.Handler())

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output:
	// 200 text/html; charset=utf-8
}
