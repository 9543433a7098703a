package rules

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// Feeds are feeds by name. In a file, a feed changes a base: the feed in its key `extends`, or else the current feed of
// the same name, or else the feed plain. Therefore an experiment arm lists only the differences:
//
//	feeds:
//	  home:
//	    experiment_arms: [{feed: calm, share: 0.1}]
//	  calm:
//	    extends: home
//	    caps: {author: 1}
type Feeds map[string]Feed

// Element returns the base of a feed with a new name, for the reference of the configuration.
func (Feeds) Element() any {
	base := Default()["plain"]
	return &base
}

// extendsKey is the key that names the base of a feed.
const extendsKey = "extends"

// UnmarshalYAML decodes feeds over the current ones. It returns a *yaml.TypeError that lists all problems.
func (fs *Feeds) UnmarshalYAML(node *yaml.Node) error {
	r := reader{known: maps.Clone(*fs), nodes: map[string]*yaml.Node{}}
	if r.known == nil {
		r.known = Feeds{}
	}
	r.split(node)
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		r.read(name, nil)
	}
	if len(r.problems) > 0 {
		return &yaml.TypeError{Errors: r.problems}
	}
	*fs = r.known
	return nil
}

// reader decodes feeds, each after its base.
type reader struct {
	known    Feeds
	nodes    map[string]*yaml.Node // not read yet
	problems []string
}

func (r *reader) addProblem(at *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("line %d: ", at.Line)+fmt.Sprintf(format, args...))
}

func (r *reader) split(node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.addProblem(node, "feeds: want a mapping of names to rules")
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		r.nodes[node.Content[i].Value] = node.Content[i+1]
	}
}

// read decodes the feed with the given name, if it has a node. path lists the feeds that depend on it.
func (r *reader) read(name string, path []string) {
	node := r.nodes[name]
	if node == nil {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.addProblem(node, "feed %s: want a mapping", name)
		delete(r.nodes, name)
		return
	}
	feed, rest := r.base(name, node, append(path, name))
	delete(r.nodes, name)
	r.unknownKeys(rest, reflect.TypeFor[Feed]())
	if err := rest.Decode(&feed); err != nil {
		var types *yaml.TypeError
		if !errors.As(err, &types) {
			types = &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %v", node.Line, err)}}
		}
		r.problems = append(r.problems, types.Errors...)
	}
	r.known[name] = feed
}

// base returns the base of a feed, and the feed's node without the key extends.
func (r *reader) base(name string, node *yaml.Node, path []string) (Feed, *yaml.Node) {
	rest := *node
	rest.Content = nil
	base, known := r.known[name]
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value != extendsKey {
			rest.Content = append(rest.Content, key, value)
			continue
		}
		if slices.Contains(path, value.Value) {
			r.addProblem(value, "feed %s: extends: cycle: %s", value.Value, strings.Join(append(path, value.Value), ", "))
			continue
		}
		r.read(value.Value, path)
		if base, known = r.known[value.Value]; !known {
			r.addProblem(value, "feed %s: extends: %q: no such feed", name, value.Value)
		}
		base.ExperimentArms = nil
	}
	if !known {
		base = Default()["plain"]
	}
	base.Shares, base.Utility = maps.Clone(base.Shares), maps.Clone(base.Utility)
	base.ExperimentArms = slices.Clone(base.ExperimentArms)
	return base, &rest
}

// unknownKeys reports keys that are not fields, as a strict decoder does. Decoding a yaml.Node cannot be strict.
func (r *reader) unknownKeys(node *yaml.Node, t reflect.Type) {
	switch {
	case node.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		for _, n := range node.Content {
			r.unknownKeys(n, t.Elem())
		}
	case node.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			field, ok := fieldOf(t, key.Value)
			if !ok {
				r.addProblem(key, "field %s not found in type %s", key.Value, t)
				continue
			}
			r.unknownKeys(node.Content[i+1], field)
		}
	}
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == key {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

// Validate returns an error that lists every problem of every feed.
func (fs Feeds) Validate() error {
	var problems settings.Problems
	problems.Want(len(fs) > 0, "feeds: want at least one")
	for _, name := range slices.Sorted(maps.Keys(fs)) {
		problems.Add(settings.Under("feeds."+name, errors.Join(fs[name].validate(), fs.validateArms(name))))
	}
	return problems.Err()
}

func (fs Feeds) validateArms(name string) error {
	var problems settings.Problems
	sum := 0.0
	for i, arm := range fs[name].ExperimentArms {
		at := fmt.Sprintf("experiment_arms[%d]", i)
		problems.Want(arm.Share > 0, "%s.share: %v: want above 0", at, arm.Share)
		sum += arm.Share
		other, ok := fs[arm.Feed]
		problems.Want(ok, "%s.feed: %q: no such feed", at, arm.Feed)
		problems.Want(len(other.ExperimentArms) == 0, "%s.feed: %q: want a feed without arms", at, arm.Feed)
	}
	problems.Want(sum <= 1, "experiment_arms: sum of shares: %v: want at most 1", sum)
	return problems.Err()
}

// For returns the rules of a feed for a user, and the experiment arm of the user, or "" for none. An arm keeps its users as
// long as the shares of the arms before it do not change. ok is false if there is no such feed.
func (fs Feeds) For(name string, user schemas.UserID) (rules Feed, arm string, ok bool) {
	feed, ok := fs[name]
	place := placeOf(name, user)
	for _, a := range feed.ExperimentArms {
		if place < a.Share {
			return fs[a.Feed], a.Feed, ok
		}
		place -= a.Share
	}
	return feed, "", ok
}

// ArmShares returns the probability with which a user is in an arm, by feed and arm, including the arm "" of the users in no other
// one.
func (fs Feeds) ArmShares() map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for name, feed := range fs {
		shares := map[string]float64{"": 1}
		for _, a := range feed.ExperimentArms {
			shares[a.Feed] += a.Share
			shares[""] -= a.Share
		}
		if shares[""] <= 1e-9 { // more than rounding leaves
			delete(shares, "")
		}
		all[name] = shares
	}
	return all
}

// placeOf maps users evenly to [0, 1), differently for each feed, because experiments must be independent.
func placeOf(feed string, user schemas.UserID) float64 {
	h := ranked.Hash(feed + "\x00" + string(user))
	h = (h ^ h>>33) * 0xff51afd7ed558ccd // the finalizer of MurmurHash3; FNV alone gives similar high bits
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return float64((h^h>>33)>>11) / (1 << 53)
}
