// Package lastfmtest generates files in the format of the HetRec 2011 Last.fm set, which package lastfm reads, for tests
// without access to the real set.
package lastfmtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/smartfeed/smartfeed/internal/testkit/must"
)

// Write generates the five files in a new directory, and returns it. They have scale times the rows of the real set, its
// columns, and its skew: few users and artists have most rows. As in the real set, two tag rows have implausible dates, and
// some artists have no description. The same scale always has the same files.
func Write(t testing.TB, scale float64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range generate(scale) {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Real returns the directory of the real files: LASTFM_DIR, or one next to the root of the project. It skips the test if there
// are none.
func Real(t testing.TB, root string) string {
	t.Helper()
	dir := cmp.Or(os.Getenv("LASTFM_DIR"), filepath.Join(root, "..", "shared", "data", "lastfm-2k"))
	if _, err := os.Stat(filepath.Join(dir, "user_artists.dat")); err != nil {
		t.Skipf("set LASTFM_DIR to the directory of the HetRec 2011 Last.fm files: %v", err)
	}
	return dir
}

func generate(scale float64) map[string]string {
	const tagsPerPin = 40
	rows := func(real int) int { return max(2, int(float64(real)*scale)) }
	users, artists, tags := rows(1892), rows(17632), rows(11946)
	r := rand.New(rand.NewPCG(7, 0))
	popular := func(n int) int { return int(rand.NewZipf(r, 1.2, 4, uint64(n-1)).Uint64()) }
	user, artist := func() int { return 2 + popular(users) }, func() int { return 1 + popular(artists) }
	seen := map[string]bool{}
	unique := func(n int, row func() string) string {
		var b strings.Builder
		for range n {
			if one := row(); !seen[one] {
				seen[one] = true
				b.WriteString(one)
			}
		}
		return b.String()
	}
	day := time.Date(1956, 1, 1, 0, 0, 0, 0, time.UTC)
	tagged := func() string {
		u, a := user(), artist()
		if len(seen) >= 2 {
			day = time.Date(2005, 8, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, r.IntN(2130))
		}
		return fmt.Sprintf("%d\t%d\t%d\t%s\n", u, a, 1+(u*7+a*13+popular(tagsPerPin))%tags, day.Format("2\t1\t2006"))
	}
	friends := func() string {
		a, b := user(), user()
		if a == b {
			b = 2 + (a-1)%users
		}
		return fmt.Sprintf("%d\t%d\n%[2]d\t%[1]d\n", min(a, b), max(a, b))
	}
	listens := map[string]bool{} // a user listens to an artist once
	listened := func() string {
		one := fmt.Sprintf("%d\t%d\t", user(), artist())
		if listens[one] {
			return ""
		}
		listens[one] = true
		return one + fmt.Sprintln(1+popular(20_000)*(1+r.IntN(5)))
	}
	artistNumber, tagNumber := 0, 0
	described := func() string {
		if artistNumber++; artistNumber%50 == 0 {
			return ""
		}
		return fmt.Sprintf("%d\tartist %[1]d\thttp://music.example/%[1]d\thttp://pictures.example/%[1]d.jpg\n", artistNumber)
	}
	named := func() string {
		tagNumber++
		return fmt.Sprintf("%d\ttag %[1]d\n", tagNumber)
	}
	return map[string]string{
		"user_taggedartists.dat": "userID\tartistID\ttagID\tday\tmonth\tyear\n" + unique(rows(186479), tagged),
		"user_friends.dat":       "userID\tfriendID\n" + unique(rows(12717), friends),
		"user_artists.dat":       "userID\tartistID\tweight\n" + unique(rows(92834), listened),
		"artists.dat":            "id\tname\turl\tpictureURL\n" + unique(artists, described),
		"tags.dat":               "tagID\ttagValue\n" + unique(tags, named),
	}
}
