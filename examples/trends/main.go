// Command trends is a minimal candidate source over HTTP. It offers the pins on its command line to all users, the best
// first.
//
//	go run ./examples/trends 127.0.0.1:9700 pin:tea pin:boat
//
// The content generator POSTs {"user","feed","limit"} while a visit waits. It uses the candidates of an answer that
// arrives within the configured timeout (generator.external_sources) and within half of the visit's remaining time.
// docs/tutorials/own-source.md shows it in use.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

// request is a request for candidates.
type request struct {
	User  string `json:"user"`
	Feed  string `json:"feed"`
	Limit int    `json:"limit"`
}

// candidate is an offered pin. The generator omits it if the user has blocked its author.
type candidate struct {
	Pin     string    `json:"pin"`
	Author  string    `json:"author"`
	Created time.Time `json:"created"`
	Score   float64   `json:"score"` // unbounded; higher is better
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: trends HOST:PORT PIN…")
		os.Exit(2)
	}
	server := &http.Server{Addr: os.Args[1], Handler: handler(os.Args[2:], time.Now()), ReadTimeout: time.Second}
	fmt.Fprintln(os.Stderr, "trends:", server.ListenAndServe())
	os.Exit(1)
}

// handler responds with the pins, up to the requested number.
func handler(pins []string, created time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&req); err != nil {
			http.Error(w, "decode request: want JSON with user, feed and limit", http.StatusBadRequest)
			return
		}
		list := []candidate{}
		for i, pin := range pins[:min(max(req.Limit, 0), len(pins))] {
			list = append(list, candidate{Pin: pin, Author: "user:trends", Created: created, Score: float64(-i)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"candidates": list}) // fails only if the client has disconnected
	})
}
