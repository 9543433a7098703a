package rules

import "github.com/smartfeed/smartfeed/schemas"

// Relaxation is the level to which the caps were relaxed to avoid a short chunk.
type Relaxation string

// The relaxation levels, in the order in which they are tried. Each one includes the previous ones.
const (
	NotRelaxed      Relaxation = ""
	WithoutInterest Relaxation = "interest" // no cap for interests
	WithoutBoard    Relaxation = "board"    // no cap for boards
	TwiceAuthor     Relaxation = "author"   // twice the cap for authors
	WithoutCaps     Relaxation = "all"
)

// relaxedCaps are the caps at a relaxation level.
type relaxedCaps struct {
	Caps
	level Relaxation
}

// relaxations returns the caps at each relaxation level, in order. It omits levels that change nothing.
func (c Caps) relaxations() []relaxedCaps {
	if c.Window == 0 || c.Author == 0 && c.Board == 0 && c.Interest == 0 {
		return []relaxedCaps{{Caps{}, NotRelaxed}}
	}
	all := []relaxedCaps{{c, NotRelaxed}}
	add := func(next Caps, level Relaxation) {
		if next != all[len(all)-1].Caps {
			all = append(all, relaxedCaps{next, level})
		}
	}
	c.Interest = 0
	add(c, WithoutInterest)
	c.Board = 0
	add(c, WithoutBoard)
	c.Author *= 2
	add(c, TwiceAuthor)
	add(Caps{}, WithoutCaps)
	return all
}

// window counts the facets of the last items of a chunk: those in a window with the next place.
type window struct {
	caps  Caps
	count map[schemas.ID]int
}

func newWindow(c Caps) window { return window{caps: c, count: map[schemas.ID]int{}} }

// admits returns the name of the cap that an item in the next place would violate, or "".
func (w window) admits(f *schemas.Facets) (violated string) {
	full := func(id schemas.ID, limit int) bool { return limit > 0 && id != "" && w.count[id] >= limit }
	switch {
	case w.caps.Window == 0:
		return ""
	case full(schemas.ID(f.Author), w.caps.Author):
		return "author"
	case full(schemas.ID(f.Board), w.caps.Board):
		return "board"
	}
	if w.caps.Interest > 0 {
		for _, id := range f.Interests {
			if full(schemas.ID(id), w.caps.Interest) {
				return "interest"
			}
		}
	}
	return ""
}

// advance moves the window past the last item of a list.
func (w window) advance(list []schemas.ServedItem) {
	if w.caps.Window == 0 {
		return
	}
	w.add(&list[len(list)-1].Facets, 1)
	if left := len(list) - w.caps.Window; left >= 0 {
		w.add(&list[left].Facets, -1)
	}
}

func (w window) add(f *schemas.Facets, n int) {
	for id := range f.Followees {
		w.count[schemas.ID(id)] += n
	}
}
