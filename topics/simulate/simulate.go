// Package simulate makes up a social product: people, boards, interests, pins and who follows what, and then what goes
// on there, at a stated rate.
//
// Everything about the product as it is at first, ids included, follows from the seed: person 0 is user:ada, with boards
// such as user:ada-baking, and pin 7 by her is pin:ada-7. So to simulate the same again continues on the same product:
// its events have the same ids and, but for the creation times of pins, the same contents, and pins keep the first.
// What goes on afterwards has ids of its own run.
//
// Popularity follows a power law: few people, boards and interests have most followers, and few people do most.
// People mostly act on pins of the interests they follow.
package simulate

import (
	"errors"
	"fmt"
	"time"

	"github.com/smartfeed/smartfeed/internal/bounds"
	"github.com/smartfeed/smartfeed/schemas"
)

// Config is the size of the product and what goes on in it. See DefaultConfig.
type Config struct {
	Users         int     `yaml:"users"`           // at least 2, at most 10 million
	BoardsPerUser int     `yaml:"boards_per_user"` // 0 to 12
	Interests     int     `yaml:"interests"`       // at least 1, at most 1 million
	Pins          int     `yaml:"pins"`            // at first, at most 10 million
	Rate          float64 `yaml:"rate"`            // events a second afterwards; 0: as fast as possible
	Seed          uint64  `yaml:"seed"`

	Follows int `yaml:"follows"` // people whom each follows, about, at most 100; 0: from three on, few people many
	Star    int `yaml:"star"`    // people who follow the first one besides, less than Users
}

// DefaultConfig is a product of 200 people that is loaded in a second or two and where something happens all the time.
func DefaultConfig() Config {
	return Config{Users: 200, BoardsPerUser: 3, Interests: 40, Pins: 3000, Rate: 20, Seed: 1}
}

// maxBoards is how many boards a person has at most.
const maxBoards = 12

// Validate reports every problem.
func (c Config) Validate() error {
	return errors.Join(
		bounds.Within("users", c.Users, 2, 10_000_000),
		bounds.Within("boards_per_user", c.BoardsPerUser, 0, maxBoards),
		bounds.Within("interests", c.Interests, 1, 1_000_000),
		bounds.Within("pins", c.Pins, 0, 10_000_000),
		checkRate(c.Rate),
		bounds.Within("follows", c.Follows, 0, 100),
		bounds.Within("star", c.Star, 0, max(c.Users-1, 0)),
	)
}

func checkRate(rate float64) error {
	if rate >= 0 && rate <= 1e7 {
		return nil
	}
	return fmt.Errorf("rate: %g: want 0 to 10 million events a second", rate)
}

// past is how old the oldest pin is at first.
const past = 14 * 24 * time.Hour

// founded is when people and follows date from: before everything that goes on later, so that telling them again
// changes nothing that happened since.
const founded schemas.Micros = 1_577_836_800 * 1e6 // 2020-01-01

// DemoUsers returns the ids of n people whose feeds are worth a look, in any product of at least so many.
func DemoUsers(n int) []schemas.UserID {
	w := &world{words: newVocabulary()}
	users := make([]schemas.UserID, n)
	for i := range users {
		users[i] = w.user(i)
	}
	return users
}
