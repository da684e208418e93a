package haechi

import (
	"errors"
	"testing"
)

const ms = int64(1e6)

// The worked examples of the Haechi paper, by number.

// TestHaechi1Engine: the engine's demand mode comes to the same residuals when
// all that is demanded was issued.
func TestHaechi1Engine(t *testing.T) {
	for _, c := range []struct{ demand, residual, yielded int64 }{{20, 20, 10}, {40, 10, 0}, {50, 0, 0}} {
		e := NewEngine(EngineConfig{Period: 1000 * ms, Yield: YieldDemand})
		e.BeginPeriod(0, 50)
		issueAll(e, c.demand, 0)
		e.Tick(600 * ms)
		if e.Residual() != c.residual || e.Yielded() != c.yielded {
			t.Errorf("demand %d: found residual %d and %d given back, expected %d and %d", c.demand, e.Residual(), e.Yielded(), c.residual, c.yielded)
		}
	}
}

func issueAll(e *Engine, n, now int64) (issued int64) {
	for range n {
		e.Arrive(1, now)
		if e.Issue(1) == GrantReserved {
			issued++
		}
	}
	return issued
}

var yieldModes = map[string]YieldMode{"idle": YieldIdle, "literal": YieldLiteral, "demand": YieldDemand}

func TestHaechi2Ticks(t *testing.T) {
	expected := []int64{30, 30, 30, 30, 25, 20, 15, 10, 5, 0}
	for name, mode := range yieldModes {
		e := NewEngine(EngineConfig{Period: 1000 * ms, Yield: mode})
		e.BeginPeriod(0, 50)
		issueAll(e, 20, 0)
		for range 20 {
			e.Complete(1, 0)
		}
		for i, want := range expected {
			e.Tick(int64(i+1) * 100 * ms)
			if e.Residual() != want {
				t.Errorf("%s at tick %d: found %d tokens, expected %d", name, i+1, e.Residual(), want)
			}
		}
	}
}

func TestHaechi2AlwaysOutstanding(t *testing.T) {
	for mode, want := range map[YieldMode]int64{YieldLiteral: 20, YieldIdle: 30} {
		e := NewEngine(EngineConfig{Period: 1000 * ms, Yield: mode})
		e.BeginPeriod(0, 50)
		e.Arrive(1, 0)
		for tick := int64(1); tick <= 6; tick++ {
			for i := int64(0); i < 20 && e.Issued() < 20*tick/6; i++ {
				e.Arrive(1, tick*100*ms)
				e.Issue(1)
				e.Complete(1, tick*100*ms)
			}
			e.Tick(tick * 100 * ms)
		}
		if e.Residual() != want {
			t.Errorf("mode %d: found %d tokens, expected %d", mode, e.Residual(), want)
		}
	}
}

func TestHaechi3Admission(t *testing.T) {
	a := Admission{Capacity: 100, LocalCapacity: 50}
	names := []string{"c1", "c2", "c3", "c4", "c5"}
	if err := a.Admit(names, []int64{40, 10, 10, 10, 10}); err != nil {
		t.Error(err)
	}
	if a.LocalViolation(40, 10, 500, 1000) != true || a.LocalViolation(10, 10, 500, 1000) {
		t.Error("client 1 needs 30 of 25, the others nothing: expected a violation of client 1 only")
	}
	var refused *AdmissionError
	if err := a.Admit(names, []int64{40, 30, 10, 10, 11}); !errors.As(err, &refused) || refused.Asked != 101 || refused.Available != 100 {
		t.Errorf("sum of 101: found %v", err)
	}
	if err := a.Admit(names[:1], []int64{51}); !errors.As(err, &refused) || !refused.Local || refused.Name != "c1" || !errors.Is(err, ErrInsufficient) {
		t.Errorf("51 of 50: found %v", err)
	}
}

func TestHaechi4FetchAndAdd(t *testing.T) {
	var g Pool
	g.Set(2500)
	for i, want := range []struct{ grant, left int64 }{{1000, 1500}, {1000, 500}, {500, -500}, {0, -1500}} {
		if grant := g.Fetch(1000); grant != want.grant || g.Tokens() != want.left {
			t.Errorf("fetch %d: found %d, %d left, expected %d, %d", i+1, grant, g.Tokens(), want.grant, want.left)
		}
	}
}

func TestHaechi5Conversion(t *testing.T) {
	for _, c := range []struct {
		residuals []int64
		pool      int64
	}{{[]int64{100, 50, 0}, 250}, {[]int64{300, 150, 0}, 0}} {
		m := NewMonitor(MonitorConfig{Period: 1000 * ms, Estimator: EstimatorConfig{Profile: 1000}})
		for range c.residuals {
			m.Join(300)
		}
		m.BeginPeriod(0)
		if m.Check(600 * ms) {
			t.Error("nobody took global tokens: expected no reports")
		}
		m.Pool.Fetch(1)
		if !m.Check(600 * ms) {
			t.Error("a token was taken: expected reports")
		}
		for id, r := range c.residuals {
			m.Report(id, Report{Residual: r})
		}
		m.Check(600 * ms)
		if got := m.Pool.Tokens(); got != c.pool {
			t.Errorf("residuals %v: found %d in the pool, expected %d", c.residuals, got, c.pool)
		}
	}
}

func TestHaechi6Estimator(t *testing.T) {
	e := NewEstimator(EstimatorConfig{Profile: 1000, Floor: 850, Step: 10, Window: 3})
	for i, c := range []struct{ used, omega int64 }{{1000, 1010}, {1010, 1020}, {1000, 1000}, {940, 970}, {900, 946}, {900, 913}, {800, 913}, {913, 923}} {
		if got := e.Observe(c.used, true); got != c.omega {
			t.Errorf("period %d, %d used: found %d, expected %d", i+1, c.used, got, c.omega)
		}
	}
	if got := e.Observe(900, false); got != 923 {
		t.Errorf("a lower demand: found %d, expected 923", got)
	}
}

func TestHaechi8Limit(t *testing.T) {
	e := NewEngine(EngineConfig{Period: 1000 * ms, Limit: 3})
	e.BeginPeriod(0, 10)
	if got := issueAll(e, 4, 0); got != 3 {
		t.Errorf("found %d issued, expected 3", got)
	}
	if e.Issue(1) != GrantLimit || e.Residual() != 7 {
		t.Errorf("expected the fourth to wait with 7 tokens left, found %d", e.Residual())
	}
	e.BeginPeriod(1000*ms, 10)
	if e.Issue(1) != GrantReserved {
		t.Error("expected the fourth in the next period")
	}
}

// TestFetchRetriesOncePerMs: an engine that found the pool empty leaves it
// alone for a while, unless it is told that there is more.
func TestFetchRetriesOncePerMs(t *testing.T) {
	var pool Pool
	e := NewEngine(EngineConfig{Period: 1000 * ms, Batch: 10})
	e.BeginPeriod(0, 0)
	if e.Fetch(&pool, 0) || pool.Tokens() != -10 {
		t.Fatal("expected nothing from an empty pool")
	}
	pool.Set(100)
	if e.Fetch(&pool, ms-1) {
		t.Error("found a fetch before its time")
	}
	e.Wake(ms - 1)
	if !e.Fetch(&pool, ms-1) || e.Local() != 10 || pool.Tokens() != 90 {
		t.Errorf("found %d local and %d in the pool, expected 10 and 90", e.Local(), pool.Tokens())
	}
}

// TestMonitorPeriods: the pool of each period, and the floor that reservations are.
func TestMonitorPeriods(t *testing.T) {
	m := NewMonitor(MonitorConfig{Period: 1000 * ms, Estimator: EstimatorConfig{Profile: 1000}})
	a, b := m.Join(600), m.Join(100)
	for period := range int64(3) {
		m.BeginPeriod(period * 1000 * ms)
		if got := m.Pool.Tokens(); got != 300 {
			t.Errorf("period %d: found %d in the pool, expected 300", period, got)
		}
		m.Report(a, Report{Done: 599})
		m.Report(b, Report{Done: 100})
		m.EndPeriod(true) // 699 are below the reserved 700: no capacity
	}
	if m.Capacity() != 1000 {
		t.Errorf("found capacity %d, expected 1000", m.Capacity())
	}
	m.Remove(a)
	if c := m.Join(50); c != a || m.Reserved() != 150 {
		t.Errorf("found client %d and %d reserved, expected the free number and 150", c, m.Reserved())
	}
}

// TestLearntCapacity: without a profile the first use seen is taken.
func TestLearntCapacity(t *testing.T) {
	e := NewEstimator(EstimatorConfig{Slack: 0.002})
	for i, c := range []struct{ used, omega int64 }{{0, 0}, {1000, 1000}, {998, 1010}, {600, 600}, {400, 600}} {
		if got := e.Observe(c.used, true); got != c.omega {
			t.Errorf("period %d: found %d, expected %d", i, got, c.omega)
		}
	}
}

// TestPaidBehind: a command that costs more than there is passes and is owed,
// in this period and the next.
func TestPaidBehind(t *testing.T) {
	e := NewEngine(EngineConfig{Period: 1000 * ms})
	e.BeginPeriod(0, 10)
	e.Arrive(64, 0)
	if e.Issue(64) != GrantReserved || e.Residual() != -54 || e.Reserved() {
		t.Errorf("found %d tokens, expected 54 owed", e.Residual())
	}
	e.BeginPeriod(1000*ms, 60)
	if e.Residual() != 6 {
		t.Errorf("found %d tokens in the next period, expected 6", e.Residual())
	}
}

// TestDueBetweenTicks: a paced token may be used when it is due, not at the tick after.
func TestDueBetweenTicks(t *testing.T) {
	const second = int64(1e9)
	e := NewEngine(EngineConfig{Period: second, Lead: 10, Yield: YieldNever})
	e.BeginPeriod(0, 1000)
	for e.Due(0) {
		e.Charge(1, GrantReserved)
	}
	if n := e.Issued(); n != 10 {
		t.Errorf("%d tokens at the start, expected the lead, 10", n)
	}
	if !e.Due(second / 1000) {
		t.Error("no token when the next one is due")
	}
}
