package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Caller is the user or the service that a token identifies. The zero Caller is anonymous.
type Caller struct {
	Subject string
	User    schemas.UserID // "": a service, or anonymous
	Scopes  []string
	Expires time.Time // when the token ends, clocks that differ considered; zero: anonymous
}

// HasScope reports whether the caller has a scope.
func (c Caller) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Identities defines which tokens identify users and which identify services. A token that identifies neither, or both, is
// rejected. Services can access the data of all users, so no subject is a service by default.
type Identities struct {
	// The rest of the subject is the user's name: with the prefix auth0|, auth0|7 is user:7.
	UserPrefix    string `yaml:"user_prefix" default:"user:" help:"prefix of the subject of a user, at most 128 bytes; empty: every subject that is not a service's is a user's name"`
	ServicePrefix string `yaml:"service_prefix" default:"service:" help:"prefix of the subject of a service, at most 128 bytes; empty: no subject identifies a service"`
	// An example is gty and client-credentials.
	ServiceClaim      string `yaml:"service_claim" help:"claim that identifies a service if its value is service_claim_value or a list that contains it, at most 128 bytes; empty: none"`
	ServiceClaimValue string `yaml:"service_claim_value" help:"value of service_claim, at most 128 bytes"`
}

// maxPrefixBytes leaves space for a name in a subject.
const maxPrefixBytes = 128

// Validate reports every field that is out of bounds or contradicts another.
func (i Identities) Validate() error {
	var problems settings.Problems
	for _, field := range []struct{ name, value string }{
		{"user_prefix", i.UserPrefix}, {"service_prefix", i.ServicePrefix},
		{"service_claim", i.ServiceClaim}, {"service_claim_value", i.ServiceClaimValue},
	} {
		size := len(field.value)
		problems.Want(size <= maxPrefixBytes, "%s: %d bytes are out of range [0, %d]", field.name, size, maxPrefixBytes)
	}
	problems.Want((i.ServiceClaim == "") == (i.ServiceClaimValue == ""),
		"service_claim, service_claim_value: one is empty and the other is not")
	overlap := i.UserPrefix != "" && i.ServicePrefix != "" &&
		(strings.HasPrefix(i.UserPrefix, i.ServicePrefix) || strings.HasPrefix(i.ServicePrefix, i.UserPrefix))
	problems.Want(!overlap, "user_prefix %q, service_prefix %q: one starts with the other", i.UserPrefix, i.ServicePrefix)
	return problems.Err()
}

// An IdentityError is returned for a valid token that identifies neither a user nor a service, or both.
type IdentityError struct{ Reason string }

// Error returns the reason, which says what the token should identify.
func (e *IdentityError) Error() string { return "token identifies no caller: " + e.Reason }

// claims are the claims that this package reads.
type claims struct {
	Scope string `json:"scope,omitempty"`
	jwt.RegisteredClaims
	all map[string]json.RawMessage
}

// UnmarshalJSON keeps all claims, because ServiceClaim can name any of them.
func (c *claims) UnmarshalJSON(text []byte) error {
	type known claims
	return errors.Join(json.Unmarshal(text, (*known)(c)), json.Unmarshal(text, &c.all))
}

// has reports whether a claim is a value or a list that contains it.
func (c *claims) has(claim, value string) bool {
	var one string
	var list []string
	return json.Unmarshal(c.all[claim], &one) == nil && one == value ||
		json.Unmarshal(c.all[claim], &list) == nil && slices.Contains(list, value)
}

// caller returns the user or the service that verified claims identify.
func (i Identities) caller(given claims) (Caller, error) {
	c := Caller{Subject: given.Subject, Scopes: strings.Fields(given.Scope)}
	isService := i.ServicePrefix != "" && strings.HasPrefix(given.Subject, i.ServicePrefix) ||
		i.ServiceClaim != "" && given.has(i.ServiceClaim, i.ServiceClaimValue)
	isUser := strings.HasPrefix(given.Subject, i.UserPrefix) && !(isService && i.UserPrefix == "")
	switch {
	case isUser && isService:
		return Caller{}, &IdentityError{"its subject is a user's, and it has the claim of a service"}
	case isService:
		return c, nil
	case !isUser:
		return Caller{}, &IdentityError{"its subject (sub) is neither a user's nor a service's; want " + i.wanted()}
	}
	user, err := schemas.ParseUserID(schemas.KindUser + ":" + strings.TrimPrefix(given.Subject, i.UserPrefix))
	if err != nil {
		return Caller{}, &TokenError{"its subject (sub) is not a valid user id"}
	}
	c.User = user
	return c, nil
}

// wanted describes the tokens that identify a caller, for errors.
func (i Identities) wanted() string {
	want := []string{fmt.Sprintf("a user's with the prefix %q", i.UserPrefix)}
	if i.ServicePrefix != "" {
		want = append(want, fmt.Sprintf("a service's with the prefix %q", i.ServicePrefix))
	}
	if i.ServiceClaim != "" {
		want = append(want, fmt.Sprintf("the claim %s of a service", i.ServiceClaim))
	}
	return strings.Join(want, ", or ")
}
