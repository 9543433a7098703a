package rows_test

import (
	"testing"

	"github.com/smartfeed/smartfeed/internal/testkit/proctest"
	"github.com/smartfeed/smartfeed/topics"
)

func TestRealKafkaGenerations(t *testing.T) {
	w := proctest.NewReal(t, topics.UserActivity, topics.Impressions, topics.Generations, topics.DeadLetters, topics.TableOf(topics.Pools))
	w.Forget(topics.TableOf("pools.2"))
	emittedOnceAcrossGenerations(t, w)
}
