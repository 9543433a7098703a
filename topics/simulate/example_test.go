package simulate_test

import (
	"fmt"
	"os"

	"github.com/smartfeed/smartfeed/topics/lastfm"
	"github.com/smartfeed/smartfeed/topics/simulate"
)

// A made-up set for who may not have the real one, a hundredth as big, in the files that package lastfm reads. The same
// seed is the same set.
func ExampleLastfm_Write() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := simulate.LikeLastfm(0.01, 1).Write(dir); err != nil {
		fmt.Println(err)
		return
	}
	set, err := lastfm.Read(os.DirFS(dir))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", set.Counts())
	// Output: {Users:18 Follows:182 Pins:897 Actions:528 Skipped:{Undated:2 NoPin:11}}
}
