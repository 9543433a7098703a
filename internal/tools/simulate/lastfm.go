package simulate

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Lastfm is the size of generated files in the format of the HetRec 2011 Last.fm set, which package lastfm reads. They have
// the same names, columns, row order and skew, two tag rows without a sensible date, and some artists without a
// description. See LikeLastfm.
type Lastfm struct {
	Users   int // at least 2
	Artists int // at least 2
	Tags    int // at least 1
	Tagged  int // maximum number of tag rows; duplicates are dropped
	Friends int // maximum number of pairs; each makes two rows
	Listens int // maximum number of rows with listening counts
	Seed    uint64
}

// LikeLastfm returns the size of the real set, multiplied by scale.
func LikeLastfm(scale float64, seed uint64) Lastfm {
	n := func(real int) int { return max(2, int(float64(real)*scale)) }
	return Lastfm{
		Users:   n(1892),
		Artists: n(17632),
		Tags:    n(11946),
		Tagged:  n(186479),
		Friends: n(12717),
		Listens: n(92834),
		Seed:    seed,
	}
}

// Write writes the five files into dir. Equal values write the same bytes.
func (l Lastfm) Write(dir string) error {
	g := &lastfmFiles{Lastfm: l, chance: rand.New(rand.NewPCG(l.Seed, 0)), words: newVocabulary()}
	for _, f := range []struct {
		name  string
		write func(io.Writer)
	}{
		{"artists.dat", g.artists},
		{"tags.dat", g.tags},
		{"user_taggedartists.dat", g.tagged},
		{"user_friends.dat", g.friends},
		{"user_artists.dat", g.listens},
	} {
		if err := writeFile(filepath.Join(dir, f.name), f.write); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}

func writeFile(path string, write func(io.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	write(out) // the writer keeps an error until Flush
	return errors.Join(out.Flush(), f.Close())
}

type lastfmFiles struct {
	Lastfm
	chance *rand.Rand
	words  *vocabulary
}

// maxTagSpread bounds the tags that a user can give an artist. It is below the maximum of a pin.
const maxTagSpread = 40

// firstUser is the smallest user id, as in the real set.
const firstUser = 2

func (g *lastfmFiles) user() int { return firstUser + popular(g.chance, g.Users) }

func (g *lastfmFiles) artist() int { return 1 + popular(g.chance, g.Artists) }

// artists describes all artists except every fiftieth.
func (g *lastfmFiles) artists(out io.Writer) {
	fmt.Fprintf(out, "id\tname\turl\tpictureURL\n")
	for id := 1; id <= g.Artists; id++ {
		name := pick(g.chance, g.words.adjectives) + " " + nth(g.words.names, id)
		if id%50 != 0 {
			fmt.Fprintf(out, "%d\t%s\thttp://music.example/%d\thttp://pictures.example/%[1]d.jpg\n", id, name, id)
		}
	}
}

func (g *lastfmFiles) tags(out io.Writer) {
	fmt.Fprintf(out, "tagID\ttagValue\n")
	for id := 1; id <= g.Tags; id++ {
		fmt.Fprintf(out, "%d\t%s\n", id, nth(g.words.adjectives, id))
	}
}

func (g *lastfmFiles) tagged(out io.Writer) {
	fmt.Fprintf(out, "userID\tartistID\ttagID\tday\tmonth\tyear\n")
	rows := unique(g.Tagged, func() [3]int {
		user, artist := g.user(), g.artist()
		tag := 1 + (user*7+artist*13+popular(g.chance, maxTagSpread))%g.Tags
		return [3]int{user, artist, tag}
	})
	first := time.Date(2005, 8, 1, 0, 0, 0, 0, time.UTC)
	for i, row := range rows {
		year, month, day := first.AddDate(0, 0, g.chance.IntN(2130)).Date()
		if i < 2 {
			year = 1956
		}
		fmt.Fprintf(out, "%d\t%d\t%d\t%d\t%d\t%d\n", row[0], row[1], row[2], day, month, year)
	}
}

func (g *lastfmFiles) friends(out io.Writer) {
	fmt.Fprintf(out, "userID\tfriendID\n")
	pairs := unique(g.Friends, func() [3]int {
		a, b := g.user(), g.user()
		if a == b {
			b = firstUser + (a-firstUser+1)%g.Users
		}
		return [3]int{min(a, b), max(a, b)}
	})
	var rows [][3]int
	for _, p := range pairs {
		rows = append(rows, p, [3]int{p[1], p[0]})
	}
	slices.SortFunc(rows, compareRows)
	for _, row := range rows {
		fmt.Fprintf(out, "%d\t%d\n", row[0], row[1])
	}
}

// listens writes the artists of each user, most heard first.
func (g *lastfmFiles) listens(out io.Writer) {
	fmt.Fprintf(out, "userID\tartistID\tweight\n")
	rows := unique(g.Listens, func() [3]int { return [3]int{g.user(), g.artist()} })
	for i := range rows {
		rows[i][2] = 1 + popular(g.chance, 20_000)*(1+g.chance.IntN(5))
	}
	slices.SortStableFunc(rows, func(a, b [3]int) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(b[2], a[2]))
	})
	for _, row := range rows {
		fmt.Fprintf(out, "%d\t%d\t%d\n", row[0], row[1], row[2])
	}
}

// unique draws n rows and returns the distinct ones, sorted.
func unique(n int, draw func() [3]int) [][3]int {
	seen := map[[3]int]bool{}
	var rows [][3]int
	for range n {
		if row := draw(); !seen[row] {
			seen[row] = true
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, compareRows)
	return rows
}

func compareRows(a, b [3]int) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}
