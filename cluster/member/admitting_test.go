package member

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/cluster/mem"
)

// roll is etcd's list of members, and what must be so of it at any time.
type roll struct {
	t       *testing.T
	mu      sync.Mutex
	next    uint64
	members []etcd.Member
	removed int
}

func (r *roll) all() []etcd.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.members)
}

func (r *roll) add(peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	r.members = append(r.members, etcd.Member{ID: r.next, Peers: []string{peer}, Learner: true})
}

// start has a node that was admitted have a name.
func (r *roll) start(n Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.members {
		if n.admitted(r.members[i]) {
			r.members[i].Name = n.Name
		}
	}
}

// dying is the registry of a member that may die.
type dying struct {
	cluster.State
	*roll
	left int // calls that it makes until it dies
	late bool
}

// step is a call. The last one of a member is not made, or is late: it is made, and nobody hears of it.
func (d *dying) step(ctx context.Context, call func() error) error {
	time.Sleep(10 * time.Millisecond)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	last := d.left == 1
	if d.left--; d.left < 0 || last && !d.late {
		d.Close()
		return cluster.ErrClosed
	}
	err := call()
	if last {
		d.Close()
		return cluster.ErrClosed
	}
	return err
}

func (d *dying) Get(ctx context.Context, prefix string) (items []cluster.Item, at cluster.Revision, err error) {
	err = d.step(ctx, func() (err error) { items, at, err = d.State.Get(ctx, prefix); return err })
	return items, at, err
}

func (d *dying) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (at cluster.Revision, err error) {
	err = d.step(ctx, func() (err error) { at, err = d.State.Commit(ctx, conditions, changes); return err })
	return at, err
}

func (d *dying) Lease(ctx context.Context, ttl time.Duration) (l cluster.Lease, err error) {
	err = d.step(ctx, func() (err error) { l, err = d.State.Lease(ctx, ttl); return err })
	return l, err
}

func (d *dying) Members(ctx context.Context) (all []etcd.Member, err error) {
	err = d.step(ctx, func() error { all = d.all(); return nil })
	return all, err
}

func (d *dying) AddLearner(ctx context.Context, peer string) (_ etcd.Member, all []etcd.Member, err error) {
	err = d.step(ctx, func() error {
		for _, m := range d.all() {
			if slices.Contains(m.Peers, peer) {
				return errors.New("etcdserver: Peer URLs already exists")
			}
			if m.Name == "" {
				d.t.Errorf("%s is admitted while %s is, which has not started", peer, m.Peers)
			}
		}
		d.add(peer)
		all = d.all()
		return nil
	})
	return etcd.Member{}, all, err
}

func (d *dying) Remove(ctx context.Context, id uint64) error {
	return d.step(ctx, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.members = slices.DeleteFunc(d.members, func(m etcd.Member) bool { return m.ID == id })
		d.removed++
		return nil
	})
}

// gatehouse is a cluster whose members n1 and n2 admit nodes.
type gatehouse struct {
	*roll
	dir Dir
	net *mem.Network
}

func newGatehouse(t *testing.T, dir Dir) *gatehouse {
	g := &gatehouse{&roll{t: t}, dir, mem.NewNetwork()}
	for _, name := range []string{"n1", "n2"} {
		g.next++
		g.members = append(g.members, etcd.Member{ID: g.next, Name: name, Peers: []string{"https://" + name + ":7421"}})
	}
	return g
}

// firstDir is a directory with an authority.
func firstDir(t *testing.T) Dir {
	t.Helper()
	dir := Dir(t.TempDir())
	if err := dir.Init("c", Node{Name: "n1", Address: "127.0.0.1", Port: DefaultPort}, DefaultPace, DefaultQuota); err != nil {
		t.Fatal(err)
	}
	return dir
}

// forever is of a member that does not die.
const forever = 1 << 30

// member is one that admits nodes, until it has made some calls.
func (g *gatehouse) member(name string, calls int, late bool) *doorman {
	d := &dying{State: g.net.State(name), roll: g.roll, left: calls, late: late}
	g.t.Cleanup(func() { d.Close() })
	return newDoorman(g.dir, Settings{Cluster: "c", Node: Node{Name: name}}, d, slog.New(slog.DiscardHandler))
}

// applies is a node's application with a token of its own.
func (g *gatehouse) applies(name, address string) *application {
	g.t.Helper()
	key, _, err := newKey()
	if err != nil {
		g.t.Fatal(err)
	}
	a := &application{Secret: []byte(name + address), Node: Node{Name: name, Address: address, Port: DefaultPort}}
	if a.Public, err = x509.MarshalPKIXPublicKey(key.Public()); err != nil {
		g.t.Fatal(err)
	}
	value, err := json.Marshal(ticket{Version: 1, Sum: sumOf(a.Secret), Until: time.Now().Add(time.Hour)})
	if err != nil {
		g.t.Fatal(err)
	}
	s := g.net.State("admin")
	defer s.Close()
	if _, err := s.Commit(g.t.Context(), nil, []cluster.Change{{Key: ticketKey("c", sumOf(a.Secret)), Value: value}}); err != nil {
		g.t.Fatal(err)
	}
	return a
}

// TestTwoAdmit: two members that admit two nodes at once do it one after the other, each when the node
// before has started; of two nodes with one name the second one is refused.
func TestTwoAdmit(t *testing.T) {
	dir := firstDir(t)
	for names, wrong := range map[[2]string]string{{"n3", "n4"}: "", {"n3", "n3"}: "is a member already"} {
		synctest.Test(t, func(t *testing.T) {
			g := newGatehouse(t, dir)
			var all sync.WaitGroup
			var refused []string
			var mu sync.Mutex
			for i, by := range []string{"n1", "n2"} {
				a, d := g.applies(names[i], by+".example"), g.member(by, forever, false)
				all.Go(func() {
					given, err := d.admit(t.Context(), a)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						refused = append(refused, err.Error())
						return
					}
					if members := len(given.Settings.Members); members != len(g.all())-1 {
						t.Errorf("%s is told of %d other members, expected %d", a.Node.Name, members, len(g.all())-1)
					}
					time.AfterFunc(time.Second, func() { g.start(a.Node) })
				})
			}
			all.Wait()
			if text := strings.Join(refused, "; "); (text == "") != (wrong == "") || !strings.Contains(text, wrong) {
				t.Errorf("%v: found %q, expected %q", names, text, wrong)
			}
		})
	}
}

// TestOneAsksTwo: a node that asks a second member while the first one still admits it is admitted once,
// and stays so, whoever has answered.
func TestOneAsksTwo(t *testing.T) {
	dir := firstDir(t)
	synctest.Test(t, func(t *testing.T) {
		g := newGatehouse(t, dir)
		a := g.applies("n3", "n3.example")
		g.add(a.Node.peer()) // of an earlier attempt
		var all sync.WaitGroup
		for _, by := range []string{"n1", "n2"} {
			d := g.member(by, forever, false)
			all.Go(func() {
				if _, err := d.admit(t.Context(), a); err != nil {
					t.Errorf("%s: found %v", by, err)
				}
			})
		}
		all.Wait()
		if now := g.all(); len(now) != 3 || g.removed != 1 {
			t.Errorf("found %+v, and %d were removed, expected n3 and that one was", now, g.removed)
		}
	})
}

// TestAdmitterDies: whatever a member has done when it dies, another one admits the same node.
func TestAdmitterDies(t *testing.T) {
	dir := firstDir(t)
	for _, late := range []bool{false, true} {
		alive := false
		for calls := 1; !alive; calls++ {
			synctest.Test(t, func(t *testing.T) {
				g := newGatehouse(t, dir)
				a := g.applies("n3", "n3.example")
				g.add(a.Node.peer()) // of an earlier attempt
				_, err := g.member("n1", calls, late).admit(t.Context(), a)
				if alive = err == nil; alive {
					return
				}
				if status := statusOf(err); !errors.Is(err, cluster.ErrClosed) && status != http.StatusServiceUnavailable {
					t.Errorf("call %d: found %v", calls, err)
				}
				given, err := g.member("n2", forever, false).admit(t.Context(), a)
				if err != nil || len(given.Settings.Members) != 2 || len(g.all()) != 3 || !a.Node.admitted(g.all()[2]) {
					t.Errorf("call %d, late %t: found %v, members %+v", calls, late, err, g.all())
				}
			})
		}
	}
}

// TestJoinerDies: who has died, or given up, while it asked is known by its key when it asks again, also
// when its token was used meanwhile.
func TestJoinerDies(t *testing.T) {
	var keys []string
	door := newDoor(t, http.StatusForbidden)
	door.hears = func(a *application) { keys = append(keys, string(a.Public)) }
	text := token{Members: []string{door.at()}, Pin: door.pin, Secret: []byte("secret")}.text()
	dir := Dir(t.TempDir() + "/etcd")
	for range 2 {
		if err := dir.Join(t.Context(), text, Node{Name: "n2", Address: "127.0.0.1", Port: DefaultPort}, func(error) {}); err == nil {
			t.Fatal("found no error")
		}
	}
	if len(keys) != 2 || keys[0] != keys[1] {
		t.Errorf("found %d applications with keys %x, expected two with the same", len(keys), keys)
	}
}
