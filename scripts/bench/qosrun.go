package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
	"lunar/target/tcp"
)

// qosSlice is what clients count by.
const qosSlice = 100 * time.Millisecond

// slicesPerPeriod is how many slices a period of the server, one second, has.
const slicesPerPeriod = int(time.Second / qosSlice)

// qosUnit is each logical unit under load.
var qosUnit = load.Unit{BlockSize: 512, Blocks: 64 << 20 / 512}

// qosOutcome is what a run of a scenario brought, by initiator.
type qosOutcome struct {
	periods [][]scheduler.PeriodResult // as the server counts, after the warm-up
	slices  [][]int64                  // commands that the client saw end, after the warm-up
	latency []*hdrhistogram.Histogram  // ns, after the warm-up
	omega   []int64                    // the capacity of the first device as the server estimates it
	foreign float64                    // share of the machine that others took
}

// qosRun is a server with its load.
type qosRun struct {
	scenario qosScenario
	server   *target.Server
	stations []*station
	began    int64 // on evloop's clock: the end of the warm-up
	slices   int
	mu       sync.Mutex // of what several clients of one initiator share
	outcome  *qosOutcome
}

// run serves the scenario and puts its load on it, with its rules or without
// any.
func (s qosScenario) run(ctx context.Context, ruled bool, warmup, runtime time.Duration) (*qosOutcome, error) {
	r := &qosRun{scenario: s.defaulted(), slices: int(runtime / qosSlice), outcome: &qosOutcome{}}
	if err := r.serve(ruled); err != nil {
		return nil, err
	}
	err := r.load(ctx, warmup, runtime)
	end, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return r.outcome, errors.Join(err, r.server.Shutdown(end))
}

// serve starts the server.
func (r *qosRun) serve(ruled bool) error {
	s := &r.scenario
	settings := target.QoS{}
	if ruled {
		policy, err := scheduler.NewPolicy(s.rules(), nil, scheduler.Cost{})
		if err != nil {
			return err
		}
		settings = s.settings(policy)
	}
	var err error
	r.server, err = target.NewServer(target.Config{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Threads: s.units,
		Offer: login.DefaultOffer(), Limits: target.Limits{QueueDepth: 256}, QoS: settings,
	})
	if err != nil {
		return err
	}
	for i := range s.units {
		if err := r.addUnit(i); err != nil {
			return err
		}
	}
	transport, err := tcp.Open(tcp.Config{Loops: r.server.Loops()})
	if err != nil {
		return err
	}
	r.server.OnStop(transport.Close)
	return r.server.Listen(target.PortalGroup{Tag: 1, Portals: []target.Portal{transport.Portal("127.0.0.1:0")}})
}

// settings are those that tgtd would make of a configuration with this capacity
// and as many commands under way as the device takes at once.
func (s *qosScenario) settings(policy *scheduler.Policy) target.QoS {
	q := target.QoS{Policy: policy, Gate: scheduler.GateConfig{Window: s.overlap}}
	q.Coordinator.Monitor.Estimator = haechi.EstimatorConfig{Profile: s.rate, Slack: 0.002}
	if s.basic {
		q.Coordinator.Monitor.Basic = true
		q.Gate.Mode, q.Gate.Yield = scheduler.HardPool, haechi.YieldNever
	}
	return q
}

func unitTarget(i int) string { return fmt.Sprintf("iqn.2026-11.lunar.bench:unit%d", i) }

// addUnit adds a target of its own for each logical unit: a session, and so a
// connection, serves one only.
func (r *qosRun) addUnit(i int) error {
	store, err := backstore.NewRAM(int64(qosUnit.Blocks)*int64(qosUnit.BlockSize), qosUnit.BlockSize)
	if err != nil {
		return err
	}
	st := newStation(r.scenario.rate, r.scenario.overlap)
	r.stations = append(r.stations, st)
	lu, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: fmt.Sprintf("v%d", i), Store: &throttled{store, st}, BlockSize: qosUnit.BlockSize})
	if err != nil {
		return err
	}
	_, err = r.server.AddTarget(target.TargetConfig{Name: unitTarget(i), PortalGroups: []uint16{1},
		Access: []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: lu}}}}})
	return err
}

// load logs all in, and lets them work until the time is over.
func (r *qosRun) load(ctx context.Context, warmup, runtime time.Duration) error {
	conns, err := r.login(ctx)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	r.began = evloop.Monotonic() + int64(warmup)
	work, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(conns))
	r.startClients(work, conns, warmup, ended)
	r.conduct(work, warmup, runtime)
	stop()
	var errs []error
	for range conns {
		errs = append(errs, <-ended)
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// login opens a session per initiator and logical unit, in their order.
func (r *qosRun) login(ctx context.Context) (conns []*initiator.Conn, err error) {
	address := r.server.Addrs(1)[0].String()
	for i, c := range r.scenario.initiators {
		for unit := range c.units {
			conn, err := initiator.Dial(ctx, address, initiator.Options{Initiator: initiatorName(i), Target: unitTarget(unit)})
			if err != nil {
				return conns, err
			}
			conns = append(conns, conn)
			if err := conn.Ready(0); err != nil {
				return conns, err
			}
		}
	}
	return conns, nil
}

// startClients gives every session an event thread of its own.
func (r *qosRun) startClients(ctx context.Context, conns []*initiator.Conn, warmup time.Duration, ended chan<- error) {
	o := r.outcome
	for range r.scenario.initiators { // before the first of them observes
		o.slices = append(o.slices, make([]int64, r.slices))
		o.latency = append(o.latency, hdrhistogram.New(1, int64(time.Minute), 3))
	}
	for i, c := range r.scenario.initiators {
		w := load.Workload{Depth: c.depth, Rate: c.rate / float64(c.units), Sizes: []load.Share{{Bytes: 4096, Weight: 1}}, ReadPercent: 100,
			Random: true, Seed: uint64(i + 1), Warmup: warmup, Runtime: time.Hour, CPU: -1,
			Observe: func(_ int, started, finished int64) { r.observe(i, started, finished) }}
		if c.card > 0 {
			w.Rate, w.Burst = c.card/float64(c.units), int(c.rate)/c.units
		}
		for range c.units {
			conn := conns[0]
			conns = conns[1:]
			go func() {
				_, err := load.Run(ctx, []*initiator.Conn{conn}, qosUnit, w)
				ended <- err
			}()
		}
	}
}

func (r *qosRun) observe(i int, started, finished int64) {
	at := int((finished - r.began) / int64(qosSlice))
	if finished < r.began || at >= r.slices {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcome.slices[i][at]++
	_ = r.outcome.latency[i].RecordValue(finished - started)
}

// conduct waits, changes the devices' speed on the way if the scenario wants
// that, and takes down what the server has to say at the end.
func (r *qosRun) conduct(ctx context.Context, warmup, runtime time.Duration) {
	s := &r.scenario
	sleep(ctx, warmup)
	before, own := selfLook()
	for third := range 3 {
		rate := s.rate
		if third == 1 {
			rate -= int64(s.drop * float64(rate))
		}
		for _, st := range r.stations {
			st.setRate(rate)
		}
		sleep(ctx, runtime/3)
	}
	r.outcome.foreign = foreignSince(before, own)
	r.ask(int(runtime / time.Second))
}

// ask takes the server's last periods.
func (r *qosRun) ask(last int) {
	status := r.server.QoS("")
	r.outcome.omega = status.Devices[0].History
	for i := range r.scenario.initiators {
		p := status.Attainment["initiator "+initiatorName(i)]
		r.outcome.periods = append(r.outcome.periods, p[max(0, len(p)-last+1):])
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// selfLook notes the machine's load and this process's part of it. What cannot
// be read counts as nothing.
func selfLook() (busy, time.Duration) {
	b, _ := lookAround()
	own, _ := load.ProcessTime(os.Getpid())
	return b, own
}

// foreignSince is the share of the machine that others took since selfLook.
func foreignSince(before busy, own time.Duration) float64 {
	after, used := selfLook()
	return foreign(before, after, used-own)
}
