package lastfm_test

import (
	"fmt"
	"testing/fstest"
	"time"

	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/schemas"
)

// A set of two friends. The artist that user 3 tagged is a pin. User 2 has listened to it a thousand times, which is a
// save. The shift moves the last action to a day in 2026, and all other times equally.
func ExampleRead() {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	set, err := lastfm.Read(fstest.MapFS{
		"artists.dat":            file("id\tname\turl\tpictureURL\n10\tNight Ferry\thttp://music.example/10\t\n"),
		"tags.dat":               file("tagID\ttagValue\n1\tfolk\n"),
		"user_artists.dat":       file("userID\tartistID\tweight\n2\t10\t1000\n"),
		"user_friends.dat":       file("userID\tfriendID\n2\t3\n3\t2\n"),
		"user_taggedartists.dat": file("userID\tartistID\ttagID\tday\tmonth\tyear\n3\t10\t1\t1\t4\t2009\n"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	shift := set.ShiftTo(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC))
	for line := range set.Events(shift) {
		var e schemas.Event
		switch event := line.Event.(type) {
		case *schemas.UserEvent:
			e = event.Event
		case *schemas.FollowEvent:
			e = event.Event
		case *schemas.PinEvent:
			e = event.Event
		case *schemas.ActionEvent:
			e = event.Event
		}
		fmt.Println(e.Time.Time().Format(time.DateOnly), e.Actor, e.Verb, e.Object)
	}
	// Output:
	// 2020-06-22 user:2 update user:2
	// 2020-06-22 user:3 update user:3
	// 2020-06-22 user:2 follow user:3
	// 2020-06-22 user:3 follow user:2
	// 2020-06-22 user:3 follow interest:1
	// 2024-09-20 user:3 create pin:3-10
	// 2026-11-20 user:2 save pin:3-10
}
