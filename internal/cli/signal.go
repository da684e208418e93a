package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how soon after the first a signal still belongs to it:
// timeout(1), for one, signals both the process and its group.
const sameSignal = 500 * time.Millisecond

// OnSignal returns a channel that is closed by SIGTERM, by SIGINT and at the
// end of ctx, and one that gets something after SIGHUP. A second signal to end
// ends the process at once.
func OnSignal(ctx context.Context, program string, messages io.Writer) (stop, hangups <-chan struct{}, release func()) {
	signals, done, first, hangup := make(chan os.Signal, 4), make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		end := ctx.Done()
		var stopping time.Time
		for {
			select {
			case <-done:
				return
			case <-end:
				end = nil
			case s := <-signals:
				if s == syscall.SIGHUP {
					select {
					case hangup <- struct{}{}:
					default: // the one before has not been seen to
					}
					continue
				}
				if !stopping.IsZero() && time.Since(stopping) > sameSignal {
					fmt.Fprintf(messages, "%s: %v again: ending at once\n", program, s)
					os.Exit(ExitFailure)
				}
			}
			if stopping.IsZero() {
				stopping = time.Now()
				close(first)
			}
		}
	}()
	return first, hangup, func() { signal.Stop(signals); close(done) }
}
