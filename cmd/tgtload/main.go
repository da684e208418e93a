// Command tgtload is Lunar's load generator and test initiator: it logs in to a
// target like any initiator, keeps commands outstanding on several connections
// from one thread, and reports rates, latency and the CPU time per I/O.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
)

// version is set when linking: -ldflags "-X main.version=...".
var version = "development"

var errMiscompare = errors.New("the target returned wrong data")

func main() {
	var o options
	kong.Parse(&o, kong.Name("tgtload"),
		kong.Description("Load an iSCSI logical unit and measure it."), kong.UsageOnError(),
		kong.Vars{"initiator": initiator.DefaultInitiator, "version": "tgtload " + version})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tgtload:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	w, err := o.workload()
	if err != nil {
		return err
	}
	conns, unit, err := o.login(ctx)
	defer closeAll(conns)
	if err != nil {
		return err
	}
	if err := o.narrow(&w, unit); err != nil {
		return err
	}
	result, err := load.Run(ctx, conns, unit, w)
	if err != nil {
		return err
	}
	if err := logoutAll(conns); err != nil {
		return err
	}
	return o.report(out, result)
}

func (o *options) report(out io.Writer, r *load.Result) error {
	if o.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	} else if err := writeText(out, r); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if r.Verification != nil && r.Verification.Miscompares > 0 {
		return fmt.Errorf("%w: %s", errMiscompare, r.Verification.First)
	}
	return nil
}

// login opens all connections, each a session of its own, and asks the first
// one for the unit's size. On error it returns those that are open.
func (o *options) login(ctx context.Context) ([]*initiator.Conn, load.Unit, error) {
	var conns []*initiator.Conn
	unit := load.Unit{LUN: o.Target.LUN, Units: o.LUNs}
	settings, err := o.session()
	if err != nil {
		return nil, unit, err
	}
	for i := range o.Connections {
		settings.Initiator = strings.ReplaceAll(o.Initiator, "%d", strconv.Itoa(i+1))
		// The qualifier makes every connection a session of its own.
		settings.ISID = [6]byte{0x80, 0, 0, byte(o.Qualifier), byte((i + 1) >> 8), byte(i + 1)}
		c, err := initiator.Dial(ctx, o.Target.Address, settings)
		if err != nil {
			return conns, unit, fmt.Errorf("session %d: %w", i, err)
		}
		conns = append(conns, c)
		if err := ready(ctx, c, unit.Of(i)); err != nil {
			return conns, unit, fmt.Errorf("session %d: %w", i, err)
		}
	}
	unit.BlockSize, unit.Blocks, err = conns[0].Capacity(unit.LUN)
	return conns, unit, err
}

// How long a unit may be not accessible by the path until the run fails, and how often it is asked.
const (
	accessTime  = 30 * time.Second
	accessEvery = 100 * time.Millisecond
)

// ready waits for the unit as hosts do: also while another path leads to it, or it is on its way
// between servers.
func ready(ctx context.Context, c *initiator.Conn, lun uint64) error {
	ctx, cancel := context.WithTimeout(ctx, accessTime)
	defer cancel()
	for {
		err := c.Ready(lun)
		if !elsewhere(err) {
			return err
		}
		select {
		case <-time.After(accessEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// elsewhere reports whether an error is the asymmetric access state of a path: in transition,
// standby or unavailable.
func elsewhere(err error) bool {
	var failed *initiator.StatusError
	if !errors.As(err, &failed) {
		return false
	}
	key, asc, ascq := failed.Result.SenseKey()
	return key == 2 && asc == 4 && ascq >= 0x0a && ascq <= 0x0c
}

func logoutAll(conns []*initiator.Conn) error {
	for i, c := range conns {
		if code, err := c.Logout(0); err != nil || code != 0 {
			return fmt.Errorf("logout of session %d: response %d: %w", i, code, err)
		}
	}
	return nil
}

func closeAll(conns []*initiator.Conn) {
	for _, c := range conns {
		c.Close()
	}
}
