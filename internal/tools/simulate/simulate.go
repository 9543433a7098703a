// Package simulate generates a demo: users, boards, interests, pins and follows. It then generates live events at a given
// rate.
//
// The seed determines the whole initial data, including ids. User 0 is user:ada, with boards such as user:ada-baking,
// and her pin 7 is pin:ada-7. Therefore a second simulation with the same seed continues with the same data. Its initial
// events have the same ids and, apart from the creation times of pins, the same contents; pins keep their first creation
// time. The ids of live events differ between runs.
//
// Popularity follows a power law: few users, boards and interests have most of the followers, and few users create most of
// the events. Users mostly act on pins of the interests that they follow.
package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config sets the size and the event rate of the demo. See DefaultConfig.
type Config struct {
	Users         int     `yaml:"users"`           // at least 2, at most 10 million
	BoardsPerUser int     `yaml:"boards_per_user"` // 0 to 12
	Interests     int     `yaml:"interests"`       // at least 1, at most 1 million
	Pins          int     `yaml:"pins"`            // initial pins, at most 10 million
	Rate          float64 `yaml:"rate"`            // live events per second; 0: as fast as possible
	Seed          uint64  `yaml:"seed"`

	Follows int `yaml:"follows"` // approximate number of users that each user follows, at most 100; 0: varies from 3, few users follow many
	Star    int `yaml:"star"`    // additional followers of the first user, less than Users
}

// DefaultConfig returns a demo with 200 users, which loads in two seconds and has 20 live events per second.
func DefaultConfig() Config {
	return Config{Users: 200, BoardsPerUser: 3, Interests: 40, Pins: 3000, Rate: 20, Seed: 1}
}

// maxBoards is the maximum number of boards per user.
const maxBoards = 12

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	return errors.Join(
		settings.Within("users", c.Users, 2, 10_000_000),
		settings.Within("boards_per_user", c.BoardsPerUser, 0, maxBoards),
		settings.Within("interests", c.Interests, 1, 1_000_000),
		settings.Within("pins", c.Pins, 0, 10_000_000),
		checkRate(c.Rate),
		settings.Within("follows", c.Follows, 0, 100),
		settings.Within("star", c.Star, 0, max(c.Users-1, 0)),
	)
}

func checkRate(rate float64) error {
	if rate >= 0 && rate <= 1e7 {
		return nil
	}
	return fmt.Errorf("rate: %g: want 0 to 10 million events per second", rate)
}

// past is the age of the oldest initial pin.
const past = 14 * 24 * time.Hour

// founded is the time of the initial users and follows. It is before all live events: if the initial events are published
// again, they do not undo later changes.
const founded schemas.Micros = 1_577_836_800 * 1e6 // 2020-01-01

// DemoUsers returns the ids of n users with many followees. They exist in any demo with at least n users.
func DemoUsers(n int) []schemas.UserID {
	w := &world{words: newVocabulary()}
	users := make([]schemas.UserID, n)
	for i := range users {
		users[i] = w.user(i)
	}
	return users
}
