package revisions

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
	"lunar/internal/eventually"
)

// nodes are followers of a cluster in the process. Their tests run in virtual time: in real time a busy
// machine makes requests and leases end.
type nodes struct {
	t   *testing.T
	net *mem.Network
	all map[string]*node
}

type node struct {
	mu         sync.Mutex
	in         *Document
	unreadable []error
	end        context.CancelFunc
	mute       bool
	says       []byte // of every document; nil: something short
}

func (n *node) Follow(d *Document) { n.mu.Lock(); defer n.mu.Unlock(); n.in = d }

func (n *node) Unreadable(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unreadable = append(n.unreadable, err)
}

func (n *node) Judge(ctx context.Context, d *Document) json.RawMessage {
	if n.mute {
		<-ctx.Done()
	}
	if n.says != nil {
		return n.says
	}
	return json.RawMessage(fmt.Sprintf("%q", "about "+string(d.Text)))
}

func (n *node) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.in == nil {
		return ""
	}
	return string(n.in.Text)
}

func newNodes(t *testing.T, names ...string) *nodes {
	all := &nodes{t: t, net: mem.NewNetwork(), all: map[string]*node{}}
	for _, name := range names {
		all.begin(name, &node{})
	}
	return all
}

func (all *nodes) begin(name string, n *node) {
	ctx, end := context.WithCancel(all.t.Context())
	n.end, all.all[name] = end, n
	var ended sync.WaitGroup
	ended.Go(func() { all.at(name).Follow(ctx, name, n) })
	all.t.Cleanup(func() { end(); ended.Wait() })
}

func (all *nodes) at(name string) Store {
	return Store{State: all.net.State(name), Keys: cluster.KeysOf("lab")}
}

func wanted(names ...string) func() []string { return func() []string { return names } }

// propose makes a document the newest, and returns its revision.
func (all *nodes) propose(name, text string) int64 {
	all.t.Helper()
	p, err := all.at(name).Propose(all.t.Context(), &Document{ID: text, Text: []byte(text)}, 0, 0)
	if err != nil {
		all.t.Fatal(err)
	}
	defer p.End()
	if err := p.Commit(all.t.Context()); err != nil {
		all.t.Fatal(err)
	}
	return p.Revision
}

// TestPropose: every node says what it thinks of a proposal, and all follow what comes of it,
// also one that was away.
func TestPropose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newNodes(t, "n1", "n2")
		p, err := all.at("n1").Propose(t.Context(), &Document{ID: "a", Text: []byte("first")}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		said, err := p.Verdicts(t.Context(), wanted("n1", "n2"))
		if err != nil || string(said["n1"]) != `"about first"` || string(said["n2"]) != `"about first"` {
			t.Errorf("found %s, %v", said, err)
		}
		if all.all["n2"].text() != "" {
			t.Error("a node follows what is no more than proposed")
		}
		if err := p.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.End()
		all.begin("n3", &node{})
		for _, name := range []string{"n1", "n2", "n3"} {
			eventually.Holds(t, name+" follows", func() bool { return all.all[name].text() == "first" })
		}
		for range kept + 3 {
			all.propose("n2", "again")
		}
		history, err := all.at("n3").History(t.Context())
		if err != nil || len(history) != kept || history[kept-1].Revision != kept+4 {
			t.Errorf("found %d revisions, %v", len(history), err)
		}
		if left, _, err := all.net.State("n1").Get(t.Context(), cluster.KeysOf("lab").Verdicts()); err != nil || len(left) > 0 {
			t.Errorf("found verdicts %v, %v", left, err)
		}
	})
}

// TestTwoPropose: of two who ask at once one is told whose proposal is under way, and who
// means another revision than the newest is refused.
func TestTwoPropose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newNodes(t)
		first, err := all.at("n1").Propose(t.Context(), &Document{ID: "a", By: "alice", Node: "n1", What: "apply a"}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all.at("n2").Propose(t.Context(), &Document{ID: "b"}, 0, 0); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "alice asked node n1") {
			t.Errorf("found %v", err)
		}
		if err := first.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		first.End()
		if _, err := all.at("n2").Propose(t.Context(), &Document{ID: "b"}, 0, 5); !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("found %v", err)
		}
		if _, err := all.at("n2").Propose(t.Context(), &Document{ID: "b"}, 7, 1); !errors.Is(err, cluster.ErrConflict) { // the state was restored
			t.Errorf("a revision that is not the newest which is known: found %v", err)
		}
		second, err := all.at("n2").Propose(t.Context(), &Document{ID: "b"}, 7, 7)
		if err != nil || second.Revision != 8 {
			t.Fatalf("found %+v, %v", second, err)
		}
		second.End()
		if err := second.Commit(t.Context()); !errors.Is(err, cluster.ErrConflict) {
			t.Errorf("a proposal that has ended: found %v", err)
		}
	})
}

// TestUnreadable: what no node of this version reads is told of, and followed by nobody.
func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newNodes(t, "n1")
		keys := cluster.KeysOf("lab")
		all.propose("n1", "good")
		eventually.Holds(t, "the node follows", func() bool { return all.all["n1"].text() == "good" })
		for revision, value := range map[int64]string{2: "{", 3: `{"version":2,"revision":3}`, 4: `{"version":1,"revision":4,"text":"eA=="}`} {
			if _, err := all.net.State("n1").Commit(t.Context(), nil, []cluster.Change{{Key: keys.Document(revision), Value: []byte(value)}}); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Holds(t, "the node hears of all", func() bool {
			n := all.all["n1"]
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.unreadable) > 0
		})
		if _, err := all.at("n1").Newest(t.Context()); !errors.Is(err, ErrUnreadable) {
			t.Errorf("found %v", err)
		}
		if all.all["n1"].text() != "good" {
			t.Error("a node follows what cannot be read")
		}
		if got := all.propose("n1", "better"); got != 5 {
			t.Errorf("found revision %d", got)
		}
		eventually.Holds(t, "the node follows again", func() bool { return all.all["n1"].text() == "better" })
	})
}

// TestTooLong: a text that the state would not take is refused before it is asked about.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newNodes(t)
		for name, text := range map[string][]byte{"long": make([]byte, MaxText+1), "dense": noise(MaxStored + 1)} {
			if _, err := all.at("n1").Propose(t.Context(), &Document{ID: "a", Text: text}, 0, 0); !errors.Is(err, ErrTooLong) {
				t.Errorf("%s: found %v", name, err)
			}
		}
		long := Document{Revision: 1, Text: make([]byte, MaxText)}
		value, err := long.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Decode(value); err != nil || len(back.Text) != MaxText {
			t.Errorf("found %v", err)
		}
	})
}

// TestLongVerdict: what a node says of a large change arrives, though the state does not take as
// much at once; what it does not take in any form is told of.
func TestLongVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := fmt.Appendf(nil, "%q", strings.Repeat("volumes.pvc-0001: new, ", 1<<17))
		all := newNodes(t)
		all.begin("n1", &node{says: long})
		p, err := all.at("n1").Propose(t.Context(), &Document{ID: "a"}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if said, err := p.Verdicts(ctx, wanted("n1")); err != nil || !bytes.Equal(said["n1"], long) {
			t.Errorf("found %d bytes, %v", len(said["n1"]), err)
		}
		dense := fmt.Appendf(nil, "%q", base64.StdEncoding.EncodeToString(noise(2<<20)))
		all.begin("n2", &node{says: dense})
		if _, err := p.Verdicts(ctx, wanted("n1", "n2")); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "node n2") {
			t.Errorf("found %v", err)
		}
		p.End()
	})
}

// FuzzDecode: whatever is in the state is refused, or is a document that can be stored again.
func FuzzDecode(f *testing.F) {
	d := Document{Revision: 3, ID: "a", By: "alice", Shrink: []string{"db"}, Text: []byte("volumes: {}")}
	value, err := d.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value)
	f.Add([]byte(`{"version":1,"revision":4,"text":"eA=="}`))
	f.Add(verdictOf("a", bytes.Repeat([]byte(" "), longVerdict+1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = (&Proposal{Document: &Document{ID: "a"}}).said(b)
		d, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Errorf("found %v", err)
			}
			return
		}
		again, err := d.Encode()
		if err != nil {
			return // it is longer than what is written
		}
		if back, err := Decode(again); err != nil || !bytes.Equal(back.Text, d.Text) || back.ID != d.ID || back.Revision != d.Revision {
			t.Errorf("found %+v, %v, expected %+v", back, err, d)
		}
	})
}

// noise does not become shorter.
func noise(n int) []byte {
	out, state := make([]byte, n), uint64(1)
	for i := range out {
		state = state*6364136223846793005 + 1442695040888963407
		out[i] = byte(state >> 56)
	}
	return out
}

// TestProposerDies: its proposal ends with its lease, and others can propose.
func TestProposerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newNodes(t, "n2")
		dead := all.net.State("n1")
		if _, err := (Store{dead, cluster.KeysOf("lab")}).Propose(t.Context(), &Document{ID: "a"}, 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := dead.Close(); err != nil {
			t.Fatal(err)
		}
		eventually.Holds(t, "another proposal is possible", func() bool {
			p, err := all.at("n2").Propose(t.Context(), &Document{ID: "b"}, 0, 0)
			if err == nil {
				p.End()
			}
			return err == nil
		})
	})
}
