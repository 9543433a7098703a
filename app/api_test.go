package app

import (
	"encoding/json"
	"net/http"
)

// get reads a response of the API.
func get[T any](s door, path string) (answer T) {
	s.t.Helper()
	res, err := http.Get(s.base + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
	return answer
}

type pinList struct{ Items []struct{ Pin string } }
