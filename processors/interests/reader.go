package interests

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/smartfeed/smartfeed/internal/convert"
	"github.com/smartfeed/smartfeed/processors/decay"
	"github.com/smartfeed/smartfeed/processors/rows"
	"github.com/smartfeed/smartfeed/schemas"
)

// Reader reads the partitions that this process owns. Its methods return a *rows.NotOwnerError for any other partition.
type Reader struct {
	Rows       rows.Reader
	Config     Config
	Partitions int32
	Now        func() time.Time
}

func (r Reader) now() schemas.Micros { return schemas.MicrosOf(r.Now()) }

// Terms returns up to limit candidates of a partition, and the named terms whether or not they are candidates; the highest
// score comes first. It does not return terms that Config blocks.
func (r Reader) Terms(ctx context.Context, partition int32, limit int, named []string) ([]schemas.DictionaryTerm, error) {
	list := []schemas.DictionaryTerm{}
	wanted := map[string]bool{}
	for _, name := range named {
		wanted[name] = true
	}
	now, blocked := r.now(), r.Config.Blocked()
	err := r.Rows.Read(ctx, dictionaries(r.Partitions)[partition], func(s rows.Snapshot) error {
		return rows.Each(s, []byte{rowTerm}, func(name string, t term) {
			pins := t.Pins - t.MaxError
			if !wanted[name] && (pins < int64(r.Config.MinPins) || t.People < int64(r.Config.MinAuthors)) || blocked(name) != "" {
				return
			}
			recent := t.recent(now)
			list = append(list, schemas.DictionaryTerm{
				Term: name, State: schemas.TermCandidate, Score: t.score(name, recent, r.Config), Pins: pins, People: t.People, Recent: recent,
			})
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read terms of partition %d: %w", partition, err)
	}
	slices.SortFunc(list, func(a, b schemas.DictionaryTerm) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Term, b.Term))
	})
	left := limit
	return slices.DeleteFunc(list, func(t schemas.DictionaryTerm) bool {
		if wanted[t.Term] {
			return false
		}
		left--
		return left < 0
	}), nil
}

// Interests returns up to limit interests of a user, strongest first.
func (r Reader) Interests(ctx context.Context, user schemas.UserID, limit int) ([]schemas.UserInterest, error) {
	list := []schemas.UserInterest{}
	now := r.now()
	err := r.Rows.Read(ctx, string(user), func(s rows.Snapshot) error {
		known, err := all(s)
		if err != nil {
			return err
		}
		total, ids := decay.None(), strongest(known)
		for _, id := range ids {
			total = total.Plus(known[id].Strength)
		}
		for _, id := range ids[:min(limit, len(ids))] {
			l := known[id]
			list = append(list, schemas.UserInterest{
				Interest: schemas.InterestID(id), Strength: l.Strength.At(now, scale), Share: l.Strength.Share(total),
				Evidence: append([]schemas.Evidence{}, l.Evidence...),
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read interests of %s: %w", user, err)
	}
	return list, nil
}

// Engagement returns the impressions and actions on an interest's pins in the last days, including today, by source.
func (r Reader) Engagement(ctx context.Context, interest schemas.InterestID, days int) ([]schemas.SourceEngagement, error) {
	bySource := map[string]map[string]int64{}
	first := int64(day(r.now())) - int64(days)
	err := r.Rows.Read(ctx, string(interest), func(s rows.Snapshot) error {
		return rows.Each(s, []byte{rowCount}, func(rest string, n rows.Number) {
			source, what, ok := strings.Cut(rest[4:], "\x00")
			if !ok || int64(binary.BigEndian.Uint32([]byte(rest))) <= first {
				return
			}
			if bySource[source] == nil {
				bySource[source] = map[string]int64{}
			}
			bySource[source][what] += int64(n)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read engagement of %s: %w", interest, err)
	}
	return convert.All(slices.Sorted(maps.Keys(bySource)), func(source string) schemas.SourceEngagement {
		return schemas.SourceEngagement{Source: schemas.Source(source), Counts: bySource[source]}
	}), nil
}
