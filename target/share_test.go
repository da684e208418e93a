package target_test

import (
	"fmt"
	"io"
	"sync"
	"testing"

	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
)

// manyTargets make SendTargets costly.
const manyTargets = 200

// floods are requests that cost their sender next to nothing. most is what one of them
// may cost the thread at the end of a pass, in units of control work.
var floods = []struct {
	name    string
	options initiator.Options
	most    int
	request func(*initiator.Conn) *initiator.PDU
}{
	{"SendTargets", initiator.Options{}, 64, func(c *initiator.Conn) *initiator.PDU { return urgent(c, text(c, 0x80, "SendTargets=All\x00")) }},
	{"SendTargets in a session", initiator.Options{Target: testTarget}, 64, func(c *initiator.Conn) *initiator.PDU { return urgent(c, text(c, 0x80, "SendTargets=\x00")) }},
	{"unknown keys", initiator.Options{}, 64, func(c *initiator.Conn) *initiator.PDU { return urgent(c, text(c, 0x80, "X-a=1\x00X-b=2\x00")) }},
	{"pings with data", initiator.Options{}, 64, func(c *initiator.Conn) *initiator.PDU { return urgent(c, nop(8192)) }},
	{"what nobody knows", initiator.Options{}, 1, func(c *initiator.Conn) *initiator.PDU { return urgent(c, header(0x1c, 0x80, 0, 0)) }},
	{"task management", initiator.Options{Target: testTarget}, 64, func(c *initiator.Conn) *initiator.PDU { return urgent(c, manage(c, 5, initiator.NoTag)) }},
	{"INQUIRY", initiator.Options{Target: testTarget}, 1, func(c *initiator.Conn) *initiator.PDU {
		return urgent(c, command(c, []byte{0x12, 0, 0, 0, 96, 0}, 0xc0, 96, nil))
	}},
	{"reads outside the window", initiator.Options{Target: testTarget}, 1, func(c *initiator.Conn) *initiator.PDU { return urgent(c, read512(c)) }},
	{"REPORT LUNS", initiator.Options{Target: testTarget}, 2, func(c *initiator.Conn) *initiator.PDU {
		return urgent(c, command(c, []byte{0xa0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}, 0xc0, 1024, nil))
	}},
}

// urgent makes a request one outside the command window, of which nothing bounds the
// number.
func urgent(c *initiator.Conn, p *initiator.PDU) *initiator.PDU {
	p.SetImmediate()
	p.SetU32(initiator.AtITT, c.NewITT())
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	return p
}

// TestFloodsAreDividedIntoPasses: in every pass of its thread a neighbour's socket is
// looked at, so the work of one pass is what stands between two looks. It is the same
// however many send however much, and the neighbour goes on meanwhile.
func TestFloodsAreDividedIntoPasses(t *testing.T) {
	f := newField(t)
	for i := range manyTargets {
		if _, err := f.rig.server.AddTarget(target.TargetConfig{Name: fmt.Sprintf("iqn.2026-11.lunar:t%d", i), PortalGroups: []uint16{1},
			Access: []target.AccessRule{{Initiators: []string{"iqn.*"}, Auth: login.Auth{AllowNone: true}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, flood := range floods {
		t.Run(flood.name, func(t *testing.T) {
			f := *f
			f.TB = t
			f.flood(flood.options, flood.request)
			if most := f.rig.server.MostWork(); most > target.PassWork+flood.most {
				t.Errorf("%d units of control work in one pass, expected no more than %d and one request of %d", most, target.PassWork, flood.most)
			}
			f.calm()
		})
	}
}

// flood sends thousands of requests on several connections and waits until all of them
// have been answered.
func (f *field) flood(o initiator.Options, request func(*initiator.Conn) *initiator.PDU) {
	const senders, requests = 8, 1500
	var done sync.WaitGroup
	for i := range senders {
		o.ISID = [6]byte{0x80, 7, 7, 7, 7, byte(i)}
		c := f.rig.dial(o)
		f.enemies = append(f.enemies, c)
		done.Go(func() {
			for range requests {
				f.send(c, request(c))
			}
			logout := initiator.NewPDU(initiator.OpLogout, initiator.FlagFinal, nil)
			f.send(c, urgent(c, logout))
		})
		done.Go(func() {
			if _, err := io.Copy(io.Discard, c.Transport()); err != nil {
				f.Errorf("the server has not answered everything: %v", err)
			}
		})
	}
	done.Wait()
}

// TestDiscoveryFollowsChanges: the answer that a session has kept is given up when
// something changes that it depends on.
func TestDiscoveryFollowsChanges(t *testing.T) {
	const added = "iqn.2026-11.lunar:added"
	r := newRig(t, rigOptions{})
	c := r.dial(initiator.Options{})
	shows := func(when string, targets int, addresses int) {
		t.Helper()
		for range 2 { // the second time from what is kept
			found, err := c.SendTargets("All")
			if err != nil || len(found) != targets || targets > 0 && len(found[0].Addresses) != addresses {
				t.Errorf("%s: found %v, %v, expected %d targets with %d addresses", when, found, err, targets, addresses)
			}
		}
	}
	shows("at first", 1, 1)
	open := []target.AccessRule{{Auth: login.Auth{AllowNone: true}}}
	config := target.TargetConfig{Name: added, PortalGroups: []uint16{1}, Access: open}
	if _, err := r.server.AddTarget(config); err != nil {
		t.Fatal(err)
	}
	shows("with another target", 2, 1)
	config.Access = []target.AccessRule{{Initiators: []string{"iqn.2026-01.somebody:else"}}}
	if _, err := r.server.ChangeTarget(config); err != nil {
		t.Fatal(err)
	}
	shows("when it is for others", 1, 1)
	change, err := r.server.PreparePortals([]target.PortalGroup{{Tag: 1, Portals: portals(t, r.server, "127.0.0.1:0", "127.0.0.2:0")}})
	if err != nil {
		t.Fatal(err)
	}
	change.Commit()
	shows("with another portal", 1, 2)
	r.server.RemoveTarget(testTarget)
	shows("without targets", 0, 0)
}
