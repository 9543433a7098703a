package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !For(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("a pause of an hour was over after %s, or is said to have been cut short", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if For(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("ended after a minute: over after %s, or said to be whole", time.Since(began))
		}
		if For(ctx, 0) {
			t.Error("one whose context has ended is said to be whole")
		}
		if !For(t.Context(), -time.Second) {
			t.Error("one that lies in the past is said to have been cut short")
		}
	})
}
