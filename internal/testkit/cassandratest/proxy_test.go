package cassandratest

import (
	"bufio"
	"bytes"
	"slices"
	"testing"
	"time"
)

func TestQueue(t *testing.T) {
	const ms = time.Millisecond
	var l queue
	now := time.Now()
	wait := func(after, want time.Duration) {
		t.Helper()
		if got := l.wait(now.Add(after)); got != want {
			t.Errorf("after %s: wait %s, want %s", after, got, want)
		}
	}
	wait(0, 0) // no limit is set
	wait(0, 0)
	l.setRate(4)
	wait(0, 0)
	wait(0, 250*ms)
	wait(100*ms, 400*ms)
	wait(2000*ms, 0) // the queue is empty
	for range 4 {
		l.wait(now.Add(2000 * ms))
	}
	wait(2000*ms, Longest) // the fifth slot is a second and a quarter away
	wait(2000*ms, Longest)
	l.setRate(0)
	wait(2000*ms, 0)
}

// A node may die during an answer. Bytes that are not an answer are a fault of the proxy.
func TestProxy_KilledNodeIsADisconnect(t *testing.T) {
	ready := []byte{0x85, 0, 0, 0, 0x02, 0, 0, 0, 0}
	segment := []byte{4, 0, 2, 0, 0, 0, 'b', 'o', 'd', 'y', 0, 0, 0, 0}
	for name, c := range map[string]struct {
		said []byte
		left bool
	}{
		"nothing":        {nil, true},
		"half a header":  {ready[:5], true},
		"half a frame":   {[]byte{0x85, 0, 0, 0, 0x06, 0, 0, 0, 7, 'h'}, true},
		"ready":          {ready, true},
		"a segment":      {slices.Concat(ready, segment), true},
		"half a segment": {slices.Concat(ready, segment, segment[:8]), true},
		"no segment":     {slices.Concat(ready, []byte{0, 0, 0xff, 0, 0, 0}), false},
	} {
		var handed bytes.Buffer
		err := new(Proxy).answer(&handed, bufio.NewReader(bytes.NewReader(c.said)))
		if isDisconnect(err) != c.left {
			t.Errorf("%s: %v, left %v, want %v", name, err, isDisconnect(err), c.left)
		}
		if !bytes.HasPrefix(c.said, handed.Bytes()) {
			t.Errorf("%s: forwarded %x of %x", name, handed.Bytes(), c.said)
		}
	}
}
