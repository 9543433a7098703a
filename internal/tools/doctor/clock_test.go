package doctor

import (
	"testing"
	"time"
)

// The embedded broker does not set timestamps, so the test supplies those of real brokers.
func TestClocks_IgnoreNetworkDelay(t *testing.T) {
	sent := time.Date(2026, 1, 1, 12, 0, 0, 700_000, time.UTC)
	acknowledged := sent.Add(20 * time.Millisecond)
	for _, c := range []struct {
		name string
		has  []time.Time
		want Finding
	}{
		{"between", []time.Time{sent.Truncate(time.Millisecond), acknowledged}, Finding{OK, "the brokers' clocks differ from this one by less than 1ms", ""}},
		{"a little ahead", []time.Time{acknowledged.Add(900 * time.Millisecond)}, Finding{OK, "the brokers' clocks differ from this one by less than 901ms", ""}},
		{"one of two behind", []time.Time{sent, sent.Add(-2 * time.Second)}, Finding{Warning, "a broker's clock is 2s behind this one", keepTime}},
		{"far ahead", []time.Time{acknowledged.Add(time.Hour), sent}, Finding{Problem, "a broker's clock is 1h0m0s ahead of this one", keepTime}},
		{"far behind", []time.Time{sent.Add(-time.Minute)}, Finding{Problem, "a broker's clock is 1m0s behind this one", keepTime}},
	} {
		tried := trial{stamped: true}
		for _, has := range c.has {
			tried.stamps = append(tried.stamps, stamp{sent, has, acknowledged})
		}
		var found Findings
		if tried.compareClocks(&found); len(found) != 1 || found[0] != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, found, c.want)
		}
	}
}
