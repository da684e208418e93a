package bottleneck

import (
	"math"
	"net/netip"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/scheduler"
	"lunar/scheduler/qtcp"
)

// TestLinks: connections through one device have one estimate, of which classes get 3:2:1;
// the rate is the configuration's, and a new one begins anew with the members that there are.
func TestLinks(t *testing.T) {
	var all Links
	local := netip.MustParseAddr("127.0.0.1")
	n := &scheduler.Network{Links: map[string]int64{"lo": 600}}
	k := all.Of(local, "", Out, n)
	if k.name != "lo" || all.Of(local, "", Out, n) != k {
		t.Fatalf("127.0.0.1 leads to %q, expected lo and the same each time", k.name)
	}
	var members [3]Member
	for i := range members {
		members[i].Class = qtcp.Class(i)
		k.Join(&members[i], 0)
	}
	for i, want := range []float64{300, 200, 100} {
		if got := k.Target(qtcp.Class(i)); math.Abs(got-want) > 1e-9 {
			t.Errorf("class %d should get %g, expected %g", i, got, want)
		}
	}
	k.Leave(&members[qtcp.High])
	n.Links["lo"] = 900
	if got := all.Of(local, "", Out, n).Target(qtcp.Medium); math.Abs(got-600) > 1e-9 {
		t.Errorf("medium should get %g of the new rate without high, expected 600", got)
	}
	if all.Of(netip.MustParseAddr("192.0.2.1"), "", Out, n).Estimate() != unknownRate {
		t.Error("an address of no device has another rate than that of unknown ones")
	}
}

// TestLinkFollowsItsMembers: every eight round trips the estimate is corrected by what all
// measured together, unless one is in slow start.
func TestLinkFollowsItsMembers(t *testing.T) {
	var all Links
	k := all.Of(netip.MustParseAddr("127.0.0.1"), "", Out, &scheduler.Network{Links: map[string]int64{"lo": 1000}})
	a, b := Member{Class: qtcp.High}, Member{Class: qtcp.Low}
	k.Join(&a, 0)
	k.Join(&b, 0)
	a.Measured.Store(500)
	b.Measured.Store(200)
	for _, step := range []struct {
		now  int64
		slow bool
		want float64
	}{{8, true, 1000}, {16, false, 950}, {20, false, 950}, {24, false, 902.5}} {
		b.Slow.Store(step.slow)
		k.Observe(step.now, 1)
		if got := k.Estimate(); math.Abs(got-step.want) > 1e-9 {
			t.Errorf("at %d the estimate is %g, expected %g", step.now, got, step.want)
		}
	}
}

// TestLinkHoldsBack: those that see congestion by round trips hold back once another one has come,
// for three of the longest and a while; one that was there lately changes nothing when it comes
// again, and neither do others.
func TestLinkHoldsBack(t *testing.T) {
	const s, ms = int64(1_000_000_000), int64(1_000_000)
	var all Links
	k := all.Of(netip.MustParseAddr("127.0.0.1"), "", Out, &scheduler.Network{})
	a, b, marked := Member{Delayed: true}, Member{Delayed: true}, Member{}
	a.Trip.Store(10 * ms)
	b.Trip.Store(20 * ms)
	k.Join(&a, s)
	k.Join(&marked, s)
	if k.Holds(100 * s) {
		t.Error("one alone holds back")
	}
	k.Join(&b, 100*s)
	if !k.Holds(100*s) || !k.Holds(100*s+69*ms) || k.Holds(100*s+70*ms) {
		t.Error("two do not hold back for three round trips of 20 ms and 10 ms")
	}
	k.Leave(&b)
	k.Join(&b, 110*s)
	if k.Holds(111 * s) {
		t.Error("they hold back for one that met an empty queue 10 s before")
	}
	k.Leave(&marked)
	k.Join(&marked, 112*s)
	if k.Holds(113 * s) {
		t.Error("they hold back for one that sees marks")
	}
	k.Leave(&a)
	k.Leave(&b)
	if k.Holds(300 * s) {
		t.Error("nobody is there who would hold back")
	}
}

// TestAddressMoves: a connection that begins is on the device that has its address then.
func TestAddressMoves(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with its network
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("a network of its own: %v", err)
	}
	var all Links
	local, n := netip.MustParseAddr("192.0.2.1"), &scheduler.Network{Links: map[string]int64{"lo": 600}}
	for _, step := range []struct{ change, want string }{{"", "other"}, {"add", "lo"}, {"del", "other"}} {
		if step.change != "" {
			if out, err := exec.Command("ip", "address", step.change, "192.0.2.1/32", "dev", "lo").CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
		}
		if found := all.Of(local, "other", Out, n).Name(); found != step.want {
			t.Errorf("after %q: found %s, expected %s", step.change, found, step.want)
		}
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	for _, address := range []string{"127.0.0.1", "::1"} {
		if found := all.Of(netip.MustParseAddr(address), "other", Out, n).Name(); found != "lo" {
			t.Errorf("%s: found %s, expected lo", address, found)
		}
	}
}
