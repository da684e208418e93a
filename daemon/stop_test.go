package daemon

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait: a stop takes as long as something is written, and no longer.
func TestAwait(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		end    time.Duration // of the server; 0: never
		moving time.Duration // how long bytes become fewer
		took   time.Duration
		want   string
	}{
		"at once":      {time.Millisecond, 0, time.Millisecond, "failed"},
		"long writing": {260 * time.Second, 4 * time.Minute, 260 * time.Second, "failed"},
		"stuck":        {0, 0, 31 * time.Second, "nothing has moved for 30s; 1000B in the cache"},
		"stuck later":  {0, 2 * time.Minute, 151 * time.Second, "nothing has moved for 30s; 880B in the cache"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, ended := time.Now(), make(chan error, 1)
				if test.end > 0 {
					time.AfterFunc(test.end, func() { ended <- failed })
				}
				unwritten := func() int64 { return 1000 - int64(min(time.Since(begin), test.moving)/time.Second) }
				err := await(ended, unwritten, 30*time.Second, time.Second, func(int64) {})
				if took := time.Since(begin); took.Round(time.Second) != test.took.Round(time.Second) {
					t.Errorf("found an end after %v, expected %v", took, test.took)
				}
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("found %v, expected %s", err, test.want)
				}
			})
		})
	}
}
