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
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config sets the size and the event rate of the demo. See DefaultConfig.
type Config struct {
	Users         int     `yaml:"users" default:"200" range:"2..10000000"`
	BoardsPerUser int     `yaml:"boards_per_user" default:"3" range:"0..12"`
	Interests     int     `yaml:"interests" default:"40" range:"1..1000000"`
	Pins          int     `yaml:"pins" default:"3000" range:"0..10000000"` // initial pins
	Rate          float64 `yaml:"rate" default:"20" range:"0..10000000"`   // live events per second; 0: as fast as possible
	Seed          uint64  `yaml:"seed"`

	Follows int `yaml:"follows" range:"0..100"` // approximate number of users that each user follows; 0: varies from 3, few users follow many
	Star    int `yaml:"star"`                   // additional followers of the first user, less than Users
}

// DefaultConfig returns a demo with 200 users, which loads in two seconds and has 20 live events per second.
func DefaultConfig() Config {
	c := settings.Defaults[Config]()
	c.Seed = 1
	return c
}

// Validate reports every value that is out of its bounds.
func (c Config) Validate() error {
	return errors.Join(settings.Validate(c), settings.Within("star", c.Star, 0, max(c.Users-1, 0)))
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
