// Code generated from clients/openapi.json by TestEvent_HasFieldsOfDocument. DO NOT EDIT.

package client

import "time"

// Event is an event of any stream. Empty fields are absent.
type Event struct {
	Stream     string            `json:"stream"`
	ID         string            `json:"id"`
	Time       time.Time         `json:"time"`
	User       string            `json:"user,omitempty"`       // of candidates, client-impressions
	Actor      string            `json:"actor,omitempty"`      // of users, follows, pins, actions
	Verb       string            `json:"verb,omitempty"`       // of users, follows, pins, actions
	Object     string            `json:"object,omitempty"`     // of users, follows, pins, actions
	Attributes map[string]string `json:"attributes,omitempty"` // of users, pins, actions
	Board      string            `json:"board,omitempty"`      // of pins, actions
	Candidates []Candidate       `json:"candidates,omitempty"` // of candidates
	Embedding  []float32         `json:"embedding,omitempty"`  // of users, pins
	Interests  []string          `json:"interests,omitempty"`  // of users, pins
	Language   string            `json:"language,omitempty"`   // of pins
	Link       string            `json:"link,omitempty"`       // of pins
	Pins       []string          `json:"pins,omitempty"`       // of client-impressions
	Source     string            `json:"source,omitempty"`     // of candidates
	Surface    string            `json:"surface,omitempty"`    // of actions
	Title      string            `json:"title,omitempty"`      // of pins
	Visit      string            `json:"visit,omitempty"`      // of client-impressions
}

// Candidate is a pin that an external source offers to a user.
type Candidate struct {
	// Author of the pin: user:...
	Author string `json:"author"`
	// Board of the pin; null: none
	Board string `json:"board,omitempty"`
	// Creation time of the pin
	Created time.Time `json:"created"`
	// Interests of the pin; at most 64
	Interests []string `json:"interests,omitempty"`
	// BCP 47 tag; empty: unknown
	Language string `json:"language,omitempty"`
	// The pin: pin:...
	Pin string `json:"pin"`
	// Write-time score; compared only within its source
	Score float64 `json:"score"`
}
