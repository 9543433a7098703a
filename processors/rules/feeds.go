package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/processors/ranked"
	"github.com/smartfeed/smartfeed/schemas"
)

// Feeds are feeds by name. In a file, a feed changes the current feed of the same name, or else the file's feed home,
// without its arms. Therefore an experiment arm lists only the differences:
//
//	feeds:
//	  home:
//	    experiment_arms: [{feed: calm, share: 0.1}]
//	  calm:
//	    caps: {author: 1}
type Feeds map[string]Feed

// Element returns the base of a feed with a new name, for the reference of the configuration.
func (Feeds) Element() any {
	base := Default()[Home]
	return &base
}

// changes decodes the given values of one feed, with the options of the file's decoder.
type changes struct{ decode func(into any) error }

// UnmarshalYAML keeps the values for into.
func (c *changes) UnmarshalYAML(unmarshal func(any) error) error {
	c.decode = unmarshal
	return nil
}

func (c changes) into(feed *Feed) error {
	if c.decode == nil { // the feed is null
		return nil
	}
	return c.decode(feed)
}

// UnmarshalYAML decodes feeds over the current and the default ones. It returns a *yaml.TypeError that lists all problems.
func (fs *Feeds) UnmarshalYAML(unmarshal func(any) error) error {
	var given map[string]changes
	if err := unmarshal(&given); err != nil {
		return err
	}
	all := Default()
	maps.Copy(all, *fs)
	var problems yaml.TypeError
	for _, name := range homeFirst(given) {
		feed, known := all[name]
		if !known {
			feed = all[Home]
			feed.ExperimentArms = nil
		}
		feed.Shares, feed.Utility = maps.Clone(feed.Shares), maps.Clone(feed.Utility)
		var types *yaml.TypeError
		if err := given[name].into(&feed); errors.As(err, &types) {
			problems.Errors = append(problems.Errors, types.Errors...)
		} else if err != nil {
			return err
		}
		all[name] = feed
	}
	if len(problems.Errors) > 0 {
		return &problems
	}
	*fs = all
	return nil
}

// homeFirst returns the names of the feeds in order, but the base of new feeds first.
func homeFirst(given map[string]changes) []string {
	names := slices.Sorted(maps.Keys(given))
	if i, found := slices.BinarySearch(names, Home); found {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, Home)
	}
	return names
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
