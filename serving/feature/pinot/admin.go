package pinot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/secure"
)

// Admin is a client of a Pinot controller.
type Admin struct {
	url  string
	http *http.Client
}

// NewAdmin returns an Admin of the controller in cfg. It returns an error if a certificate or secret file cannot be
// read.
func NewAdmin(cfg Config) (*Admin, error) {
	url, err := address(cfg.Controller)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	client, err := cfg.Client.Client(&http.Transport{DisableKeepAlives: true}) // requests are rare, so there are no connections to close
	if err != nil {
		return nil, fmt.Errorf("pinot.client: %w", err)
	}
	client.Timeout = 30 * time.Second
	return &Admin{url: url, http: client}, nil
}

// maxAdminBytes limits a response of the controller.
const maxAdminBytes = 16 << 20

// errAbsent is returned for a 404.
var errAbsent = errors.New("not found")

// call sends a request and returns the body of a 200.
func (a *Admin) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := a.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := readBounded(res.Body, maxAdminBytes)
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusNotFound:
		return nil, errAbsent
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s %s: %d %s: %.500s", method, path, res.StatusCode, http.StatusText(res.StatusCode), text)
	}
	return text, nil
}

// Release returns the release of the controller.
func (a *Admin) Release(ctx context.Context) (Release, error) {
	text, err := a.call(ctx, http.MethodGet, "/version", nil)
	if err != nil {
		return "", fmt.Errorf("get version of pinot: %w", err)
	}
	var modules map[string]string
	if err := json.Unmarshal(text, &modules); err != nil {
		return "", fmt.Errorf("read version of pinot: %w", err)
	}
	version, known := modules["pinot-controller"] // plugins can have other versions
	if !known {
		return "", errors.New("read version of pinot: the controller does not report pinot-controller")
	}
	return releaseOf(version), nil
}

// put updates an object, or creates it if it is missing.
func (a *Admin) put(ctx context.Context, all, one string, body []byte) error {
	there, err := a.call(ctx, http.MethodGet, one, nil)
	switch {
	case errors.Is(err, errAbsent), err == nil && len(bytes.TrimSpace(there)) <= len("{}"): // for a missing table the controller returns {}
		_, err = a.call(ctx, http.MethodPost, all, body)
	case err == nil:
		_, err = a.call(ctx, http.MethodPut, one, body)
	}
	return err
}

// realtime returns the configuration in the controller's response about a table, or nil without one.
func realtime(v any) any {
	o, _ := v.(object)
	table, _ := o["REALTIME"].(object)
	if table == nil {
		return nil
	}
	table["tableName"] = strings.TrimSuffix(fmt.Sprint(table["tableName"]), "_REALTIME") // the controller adds it
	return table
}

func (a *Admin) compare(ctx context.Context, what, path string, want []byte, secrets map[string]secure.Secret, inside func(any) any) ([]string, error) {
	text, err := a.call(ctx, http.MethodGet, path, nil)
	if errors.Is(err, errAbsent) {
		return []string{what + ": missing"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", what, err)
	}
	var w, got any
	if err := errors.Join(json.Unmarshal(want, &w), json.Unmarshal(text, &got)); err != nil {
		return nil, fmt.Errorf("verify %s: %w", what, err)
	}
	got = inside(got)
	if got == nil {
		return []string{what + ": missing"}, nil
	}
	return differences(what, mask(w, secrets), mask(got, secrets)), nil
}

// mask removes secrets from decoded JSON, wherever they are. It keeps whether a secret has the expected value.
func mask(v any, secrets map[string]secure.Secret) any {
	switch v := v.(type) {
	case object:
		for k, inside := range v {
			if want, is := secrets[k]; !is {
				v[k] = mask(inside, secrets)
			} else if v[k] = want.String(); inside != want.Reveal() {
				v[k] = "another"
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i], secrets)
		}
	}
	return v
}

// differences compares the expected value with the actual one. Members of lists are matched by name if they have one.
func differences(at string, want, got any) []string {
	switch want := want.(type) {
	case object:
		return objectDifferences(at, want, got)
	case []any:
		return listDifferences(at, want, got)
	}
	if fmt.Sprint(want) != fmt.Sprint(got) { // a controller may write a number as a text
		return []string{fmt.Sprintf("%s: %v, want %v", at, got, want)}
	}
	return nil
}

func objectDifferences(at string, want object, got any) []string {
	g, _ := got.(object)
	var all []string
	for k, w := range want {
		v, there := g[k]
		if !there && !isDefault(w) {
			all = append(all, fmt.Sprintf("%s.%s: missing, want %v", at, k, w))
		}
		if there {
			all = append(all, differences(at+"."+k, w, v)...)
		}
	}
	slices.Sort(all)
	return all
}

// isDefault reports whether v is a default that a controller omits.
func isDefault(v any) bool {
	o, isObject := v.(object)
	return isObject && len(o) == 0 || v == ""
}

func listDifferences(at string, want []any, got any) []string {
	g, _ := got.([]any)
	if len(g) != len(want) {
		return []string{fmt.Sprintf("%s: %d entries, want %d", at, len(g), len(want))}
	}
	var all []string
	for i, w := range want {
		v := g[i]
		if name := nameOf(w); name != "" {
			j := slices.IndexFunc(g, func(v any) bool { return nameOf(v) == name })
			if j < 0 {
				all = append(all, fmt.Sprintf("%s: %s is missing", at, name))
				continue
			}
			v = g[j]
		}
		all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), w, v)...)
	}
	return all
}

func nameOf(v any) string {
	o, _ := v.(object)
	for _, key := range []string{"name", "columnName"} {
		if s, ok := o[key].(string); ok {
			return s
		}
	}
	return ""
}
