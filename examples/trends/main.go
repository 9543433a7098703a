// Command trends is a source of candidates over HTTP, as small as one can be: it offers everybody the pins that it is
// started with, the first as the best.
//
//	go run ./examples/trends 127.0.0.1:9700 pin:tea pin:boat
//
// The content generator POSTs {"user","feed","limit"} while a visit waits, and takes the candidates of an answer that comes
// within the time-out of its configuration (generator.sources) and half of what the visit has left. TUTORIAL.md shows it at
// work.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

// question is what a source is asked.
type question struct {
	User  string `json:"user"`
	Feed  string `json:"feed"`
	Limit int    `json:"limit"`
}

// candidate is one pin that is offered. Who made it decides with the reader's blocks whether it may be shown.
type candidate struct {
	Pin     string    `json:"pin"`
	Author  string    `json:"author"`
	Created time.Time `json:"created"`
	Score   float64   `json:"score"` // any number; more is better
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: trends HOST:PORT PIN…")
		os.Exit(2)
	}
	server := &http.Server{Addr: os.Args[1], Handler: offering(os.Args[2:], time.Now()), ReadTimeout: time.Second}
	fmt.Fprintln(os.Stderr, "trends:", server.ListenAndServe())
	os.Exit(1)
}

// offering answers with the pins, as many as are wanted.
func offering(pins []string, created time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&q); err != nil {
			http.Error(w, "want a question", http.StatusBadRequest)
			return
		}
		list := []candidate{}
		for i, pin := range pins[:min(max(q.Limit, 0), len(pins))] {
			list = append(list, candidate{Pin: pin, Author: "user:trends", Created: created, Score: float64(-i)})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"candidates": list}) // whoever asked is gone otherwise
	})
}
