package oracle

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/schemas"
)

const second schemas.Micros = 1e6

// event returns the common fields of an event. Its id consists of the time, the actor, the verb and the object.
func event(at int, actor schemas.UserID, verb schemas.Verb, object schemas.ID) schemas.Event {
	return schemas.Event{
		ID:     fmt.Sprintf("%d %s %s %s", at, actor, verb, object),
		Time:   schemas.Micros(at) * second,
		Actor:  actor,
		Verb:   verb,
		Object: object,
	}
}

func edgeEvent(at int, actor schemas.UserID, verb schemas.Verb, other schemas.ID) schemas.Line {
	e := &schemas.FollowEvent{Event: event(at, actor, verb, other)}
	return schemas.NewLine(e)
}

func pinEvent(at int, actor schemas.UserID, verb schemas.Verb, id schemas.ID, change ...func(*schemas.PinEvent)) schemas.Line {
	e := &schemas.PinEvent{Event: event(at, actor, verb, id)}
	for _, f := range change {
		f(e)
	}
	return schemas.NewLine(e)
}

func on(board schemas.BoardID, interests ...schemas.InterestID) func(*schemas.PinEvent) {
	return func(e *schemas.PinEvent) { e.Board, e.Interests = board, interests }
}

func userEvent(at int, user schemas.UserID, verb schemas.Verb) schemas.Line {
	e := &schemas.UserEvent{Event: event(at, user, verb, schemas.ID(user))}
	return schemas.NewLine(e)
}

func productOf(lines ...schemas.Line) *Product {
	p := New(Config{HalfLife: time.Hour})
	for _, l := range lines {
		p.Apply(l)
	}
	return p
}

// Pools, edges and lists must not depend on the order and the repetitions of events.
func TestProduct_IsIndependentOfOrder(t *testing.T) {
	users := []schemas.UserID{"user:a", "user:b", "user:c"}
	others := []schemas.ID{"user:a", "user:b", "board:x", "interest:i", "interest:j"}
	rapid.Check(t, func(t *rapid.T) {
		user := rapid.SampledFrom(users)
		at := rapid.IntRange(1, 6)
		follow := rapid.Custom(func(t *rapid.T) schemas.Line {
			verbs := []schemas.Verb{schemas.Follow, schemas.Unfollow, schemas.Block, schemas.Unblock}
			return edgeEvent(at.Draw(t, "at"), user.Draw(t, "user"), rapid.SampledFrom(verbs).Draw(t, "verb"),
				rapid.SampledFrom(others).Draw(t, "other"))
		})
		pin := rapid.Custom(func(t *rapid.T) schemas.Line {
			verb := rapid.SampledFrom([]schemas.Verb{schemas.Create, schemas.Create, schemas.Update, schemas.Delete}).Draw(t, "verb")
			id := rapid.SampledFrom([]schemas.ID{"pin:1", "pin:2", "pin:3", "pin:4"}).Draw(t, "pin")
			at := at.Draw(t, "at")
			facets := []func(*schemas.PinEvent){on("board:x", "interest:i"), on("", "interest:j"), on("board:x")}
			return pinEvent(at, user.Draw(t, "author"), verb, id, facets[at%len(facets)])
		})
		lines := rapid.SliceOfN(rapid.OneOf(follow, pin), 1, 40).Draw(t, "events")
		again := rapid.Permutation(append(slices.Clone(lines), lines[:len(lines)/2]...)).Draw(t, "another order")
		one, other := productOf(lines...), productOf(again...)
		for _, u := range users {
			for _, source := range []schemas.Source{schemas.Following, schemas.FromInterest} {
				if diff := cmp.Diff(one.Pool(u, source, 9), other.Pool(u, source, 9)); diff != "" {
					t.Fatalf("pool %s of %s:\n%s", source, u, diff)
				}
			}
			if diff := cmp.Diff(one.Edges(u), other.Edges(u)); diff != "" {
				t.Fatalf("edges of %s:\n%s", u, diff)
			}
		}
		for _, followee := range others {
			if diff := cmp.Diff(one.List(schemas.Followee(followee)), other.List(schemas.Followee(followee))); diff != "" {
				t.Fatalf("list of %s:\n%s", followee, diff)
			}
		}
	})
}
