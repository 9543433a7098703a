package schemas

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/smartfeed/smartfeed/internal/testkit/expect"
)

func TestDeliveryPortions_HoldAllPinsAndFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := InterestID(strings.Repeat("i", 250))
		pins := make([]DeliveredPin, rapid.IntRange(0, 700).Draw(t, "pins"))
		for i := range pins {
			pins[i].Version = Version(i)
			for range rapid.SampledFrom([]int{0, 1, 64}).Draw(t, "interests") {
				pins[i].Interests = append(pins[i].Interests, long)
			}
		}
		next := 0
		for _, portion := range DeliveryPortions(pins) {
			bytes := 0
			for i := range portion {
				expect.Equal(t, int(portion[i].Version), next, "pin")
				next++
				bytes += portion[i].MaxEncodedBytes()
			}
			expect.Between(t, len(portion), 1, 250, "pins of a portion")
			expect.AtMost(t, bytes, 256<<10, "bytes of a portion")
		}
		expect.Equal(t, next, len(pins), "pins")
	})
}
