package simulate_test

import (
	"fmt"
	"os"

	"github.com/smartfeed/smartfeed/internal/tools/lastfm"
	"github.com/smartfeed/smartfeed/internal/tools/simulate"
)

// Generate a set for readers without access to the real one, a hundredth of its size, in the format that package lastfm
// reads. The same seed generates the same set.
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
