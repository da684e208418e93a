package volumes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/crypt"
	"lunar/backstore/crypt/crypttest"
	"lunar/backstore/rbd"
	"lunar/backstore/rbd/fake"
	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/cluster/mem"
	"lunar/cluster/member"
	"lunar/cluster/ownership"
	"lunar/cluster/seal"
	"lunar/conf"
	"lunar/target/scsi"
)

// vault is an encrypted volume that several servers may own: the cluster's state, and Ceph.
type vault struct {
	*testing.T
	network *mem.Network
	ceph    *fake.Cluster
	keys    cluster.Keys
	dir     string
	epoch   uint64
	owners  []string // addresses of the instances that have had it
}

func newVault(t *testing.T) *vault {
	v := &vault{T: t, network: mem.NewNetwork(), ceph: fake.New(nil), keys: cluster.KeysOf("c"), dir: t.TempDir()}
	t.Cleanup(v.ceph.Close)
	v.ceph.Create("rbd/db", 1<<20)
	return v
}

// key is the path of the n-th key file.
func (v *vault) key(n int) string {
	v.Helper()
	path := filepath.Join(v.dir, fmt.Sprint(n))
	if err := os.WriteFile(path, []byte(fmt.Sprintf("%064x", n)), 0o600); err != nil {
		v.Fatal(err)
	}
	return path
}

// server is a node with key files, which serves the volume as soon as it owns it.
func (v *vault) server(name string, e *conf.VolumeEncryption) *Shared {
	v.Helper()
	life, end := context.WithCancel(context.Background())
	end() // nobody is to ask Ceph besides
	log := slog.New(slog.DiscardHandler)
	set := NewSet(Config{
		Conf: &conf.Config{Ceph: []conf.CephCluster{{Name: "main", Config: "/etc/ceph/ceph.conf", User: "lunar"}}}, Log: log,
		Ceph: rbd.NewClients(v.ceph.Library, log), StateDir: v.T.TempDir(),
		Cluster: &Cluster{
			Identity: "c", Node: name, Hold: time.Minute, Life: life, Keys: v.keys, Lost: func(string, uint64) {},
			Access: func(string) map[uint16]scsi.PortAccess { return nil },
			Inherit: func(ctx context.Context, volume string, epoch uint64, value string) (*heritage.Ledger, json.RawMessage, error) {
				return heritage.Open(ctx, heritage.Claim{State: v.network.State(name), Keys: v.keys, Volume: volume, Node: name, Epoch: epoch, Value: value})
			},
		},
	})
	unit, err := set.OpenVolume(&conf.Volume{Name: "db", Type: conf.RBDVolume, Ceph: "main", Image: "rbd/db", BlockSize: 512, Owners: []string{"n1", "n2"}, Encryption: e})
	if err != nil {
		v.Fatal(err)
	}
	s := set.SharedOf("db")
	v.Cleanup(func() {
		_ = s.Close(context.Background())
		_ = s.End()
		_ = unit.Close()
	})
	return s
}

func (v *vault) keyed(name string, key int) *Shared {
	v.Helper()
	return v.server(name, &conf.VolumeEncryption{KeyFile: v.key(key)})
}

// claim has a server open the volume, after it has fenced who had it.
func (v *vault) claim(s *Shared) error {
	v.Helper()
	v.epoch++
	r := ownership.Record{Node: s.set.Cluster.Node, Incarnation: s.set.Cluster.Node, Epoch: v.epoch, Standing: ownership.Claiming}
	if _, err := v.network.Store.Commit(nil, []cluster.Change{{Key: v.keys.Owner("db"), Value: r.Encode()}}); err != nil {
		v.Fatal(err)
	}
	ctx := v.Context()
	address, err := s.Connect(ctx, v.owners)
	if err == nil {
		err = s.Fence(ctx, v.owners)
	}
	if err != nil {
		v.Fatal(err)
	}
	_, _, err = s.Open(ctx, Claim{Epoch: v.epoch, Instance: address, Fenced: v.owners})
	v.owners = []string{address}
	return err
}

func (v *vault) owns(s *Shared) {
	v.Helper()
	if err := v.claim(s); err != nil {
		v.Fatal(err)
	}
}

// closes has a server give the volume away in order.
func (v *vault) closes(s *Shared) {
	v.Helper()
	if err := errors.Join(s.Close(v.Context()), s.End()); err != nil {
		v.Error(err)
	}
	v.owners = nil
}

// refuses has a server fail to open the volume, and say why.
func (v *vault) refuses(s *Shared, why string) {
	v.Helper()
	if err := v.claim(s); err == nil || !strings.Contains(err.Error(), why) {
		v.Errorf("found %v, expected %q", err, why)
	}
	if !s.closed() {
		v.Error("it is open")
	}
}

// lane uses what a server has open.
func (v *vault) lane(s *Shared, use func(c *backstoretest.Client)) {
	v.Helper()
	of := v.T
	defer func() { v.T = of }()
	v.Run("lane", func(t *testing.T) {
		v.T = t
		use(backstoretest.NewClient(t, s.slot, backstoretest.NewLoop(t, false)))
	})
}

// header is what the state has.
func (v *vault) header() []byte {
	v.Helper()
	items, _ := v.network.Store.Get(v.keys.Header("db"))
	if len(items) == 0 {
		return nil
	}
	return items[0].Value
}

// TestSealed: a header in the cluster's state is as any other.
func TestSealed(t *testing.T) {
	crypttest.Run(t, func(t *testing.T) crypttest.Subject {
		v := newVault(t)
		return crypttest.Subject{
			Open: func(t *testing.T, key, old string) (*crypt.Store, func() error, error) {
				s := v.server("n1", &conf.VolumeEncryption{KeyFile: key, OldKeyFile: old})
				err := v.claim(s)
				if err != nil {
					_ = s.End()
					v.owners = nil
					return nil, nil, err
				}
				return s.cipher.Load(), func() error { v.closes(s); return nil }, nil
			},
			Fail: func(fails bool) { v.network.SetQuorum(!fails) },
		}
	})
}

// TestSealedTakeover: what one owner has written the next one reads. Ceph has cipher text alone,
// the state a wrapped key, and who is superseded changes neither.
func TestSealedTakeover(t *testing.T) {
	v := newVault(t)
	first, second := v.keyed("n1", 1), v.keyed("n2", 1)
	v.owns(first)
	data := bytes.Repeat([]byte("a secret that is told to nobody."), 512)
	v.lane(first, func(c *backstoretest.Client) { c.Write(v, 4096, data) })
	held := v.ceph.Contents("rbd/db")
	if bytes.Contains(held, data[:16]) || bytes.Equal(held[4096:][:len(data)], make([]byte, len(data))) {
		t.Error("found data in clear, or none, expected cipher text in Ceph")
	}
	if text := v.header(); len(text) == 0 || bytes.Contains(text, []byte(strings.Repeat("0", 63)+"1")) {
		t.Errorf("found %q in the state, expected a wrapped key", text)
	}
	v.owns(second)
	v.lane(second, func(c *backstoretest.Client) {
		if got := c.Read(v, 4096, len(data)); !bytes.Equal(got, data) {
			t.Errorf("found %.20q, expected what the first owner has written", got)
		}
	})
	was, noted := v.header(), v.ceph.Noted("rbd/db")[rbd.HeaderNote]
	if _, err := first.Reseal(&conf.VolumeEncryption{KeyFile: v.key(2)}); err == nil {
		t.Error("a superseded owner has wrapped the header")
	}
	v.lane(first, func(c *backstoretest.Client) {
		if c.Do(backstore.Op{Kind: backstore.Erase, Len: 1 << 20}) == nil {
			t.Error("a superseded owner has erased the volume")
		}
	})
	if now := v.ceph.Noted("rbd/db")[rbd.HeaderNote]; !bytes.Equal(v.header(), was) || now != noted {
		t.Errorf("found header %s and note %q, expected %s and %q", v.header(), now, was, noted)
	}
}

// TestSealedWithoutQuorum: what is open is served without the state; keys do not change, and it is
// said why.
func TestSealedWithoutQuorum(t *testing.T) {
	v := newVault(t)
	s := v.keyed("n1", 1)
	v.owns(s)
	v.network.SetQuorum(false)
	data := backstoretest.Pattern(4096, 1)
	v.lane(s, func(c *backstoretest.Client) {
		c.Write(v, 0, data)
		if err := c.Do(backstore.Op{Kind: backstore.Erase, Len: 1 << 20}); !errors.Is(err, cluster.ErrNoQuorum) {
			t.Errorf("found %v of an erasure", err)
		}
		if got := c.Read(v, 0, len(data)); !bytes.Equal(got, data) {
			t.Error("found other data than were written")
		}
	})
	if _, err := s.Reseal(&conf.VolumeEncryption{KeyFile: v.key(2)}); !errors.Is(err, cluster.ErrNoQuorum) || !strings.Contains(err.Error(), "nothing has changed") {
		t.Errorf("found %v of another key file", err)
	}
	v.network.SetQuorum(true)
	undo, err := s.Reseal(&conf.VolumeEncryption{KeyFile: v.key(2)})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.keyed("n2", 2).Unable(v.header()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(undo(), v.keyed("n2", 1).Unable(v.header())); err != nil {
		t.Error(err)
	}
}

// TestSealedRefused: nothing is served that would read as noise, and nothing made that would lose
// data.
func TestSealedRefused(t *testing.T) {
	v := newVault(t)
	s := v.keyed("n1", 1)
	v.refuses(v.server("n2", &conf.VolumeEncryption{KeyFile: filepath.Join(v.dir, "none")}), "no such file")
	v.owns(s)
	v.lane(s, func(c *backstoretest.Client) { c.Write(v, 0, backstoretest.Pattern(4096, 1)) })
	v.closes(s)

	v.refuses(v.keyed("n2", 2), "the key file is another one")
	v.refuses(v.server("n2", nil), "no encryption in the configuration")
	if err := v.keyed("n2", 2).Unable(v.header()); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("found %v", err)
	}

	of := seal.Of{State: v.network.State("admin"), Keys: v.keys, Volume: "db"}
	copied := filepath.Join(v.dir, "copy")
	if err := errors.Join(of.Save(t.Context(), copied), of.Remove(t.Context())); err != nil {
		t.Fatal(err)
	}
	v.refuses(s, "which the cluster's state does not have: restore it")
	other := v.other()
	if err := of.Restore(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	v.refuses(s, "with which image rbd/db is enciphered")
	if err := errors.Join(of.Remove(t.Context()), of.Restore(t.Context(), copied)); err != nil {
		t.Fatal(err)
	}
	v.owns(s)
	v.lane(s, func(c *backstoretest.Client) {
		c.Must(v, backstore.Op{Kind: backstore.Erase, Len: 1 << 20})
		c.Write(v, 0, backstoretest.Pattern(4096, 1))
	})
	v.closes(s)
	if err := errors.Join(of.Remove(t.Context()), of.Restore(t.Context(), copied)); err != nil {
		t.Fatal(err)
	}
	v.refuses(s, "another master key")

	clear := newVault(t)
	plain := clear.server("n1", nil)
	clear.owns(plain)
	clear.lane(plain, func(c *backstoretest.Client) { c.Write(clear, 0, backstoretest.Pattern(4096, 1)) })
	clear.closes(plain)
	clear.refuses(clear.keyed("n1", 1), "found data in clear")
	if clear.header() != nil {
		t.Error("found a header of an image with data in clear")
	}
}

// other is a copy of another volume's header.
func (v *vault) other() string {
	v.Helper()
	w := newVault(v.T)
	s := w.keyed("n1", 1)
	w.owns(s)
	w.closes(s)
	path := filepath.Join(v.dir, "other")
	if err := (seal.Of{State: w.network.State("admin"), Keys: w.keys, Volume: "db"}).Save(v.Context(), path); err != nil {
		v.Fatal(err)
	}
	return path
}

// TestSealedKilled: wherever an owner dies while it makes the header or another master key, the next
// one has the data, or knows that they are erased.
func TestSealedKilled(t *testing.T) {
	for step, dies := range map[string]func(v *vault){
		"first note":  func(v *vault) { v.ceph.Kill(1) },
		"second note": func(v *vault) { v.ceph.Kill(2) },
		"commit":      func(v *vault) { v.network.Cut("n1", true) },
		"answer": func(v *vault) { // that to the commit, after one to a look
			var answers atomic.Int32
			v.network.Lose("n1", func() bool { return answers.Add(1) > 1 })
		},
	} {
		t.Run(step, func(t *testing.T) {
			v := newVault(t)
			first, second := v.keyed("n1", 1), v.keyed("n2", 1)
			v.owns(first)
			data := backstoretest.Pattern(4096, 1)
			v.lane(first, func(c *backstoretest.Client) { c.Write(v, 0, data) })
			mark := first.mark()
			dies(v)
			v.lane(first, func(c *backstoretest.Client) {
				op := &backstore.Op{Kind: backstore.Erase, Len: 1 << 20}
				ended := c.Go(op)
				if step == "answer" {
					was := v.header()
					for bytes.Equal(v.header(), was) {
						time.Sleep(time.Millisecond)
					}
				} else {
					<-ended
				}
				v.owns(second)
				v.network.Lose("n1", nil)
				<-ended
			})
			v.lane(second, func(c *backstoretest.Client) {
				got := c.Read(v, 0, len(data))
				if same := second.mark() == mark; bytes.Equal(got, data) != same {
					t.Errorf("found %.10x, and the same master key: %v", got, same)
				}
				if erased := step == "answer" || step == "second note"; erased != (second.mark() != mark) {
					t.Errorf("erased: %v", !erased)
				}
			})
			if words := strings.Fields(v.ceph.Noted("rbd/db")[rbd.HeaderNote]); len(words) != 2 || words[1] != second.mark() {
				t.Errorf("found note %q, expected one master key", words)
			}
		})
	}
}

// TestSealedKilledFirst: a first owner that dies while it makes the header leaves nothing that keeps
// the next one from serving.
func TestSealedKilledFirst(t *testing.T) {
	for n := 1; ; n++ {
		v := newVault(t)
		first, second := v.keyed("n1", 1), v.keyed("n2", 1)
		v.ceph.Kill(n)
		err := v.claim(first)
		v.ceph.Kill(-1)
		if err == nil {
			t.Logf("%d steps", n-1)
			return
		}
		if err := v.claim(second); err != nil {
			t.Errorf("step %d: %v", n, err)
		}
	}
}

// TestSealedLostState: a cluster's state that is lost loses no data: its backup has the header.
func TestSealedLostState(t *testing.T) {
	v := newVault(t)
	s := v.keyed("n1", 1)
	v.owns(s)
	data := backstoretest.Pattern(4096, 1)
	v.lane(s, func(c *backstoretest.Client) { c.Write(v, 0, data) })
	v.closes(s)
	file := filepath.Join(v.dir, "backup")
	if _, _, err := member.Backup(t.Context(), v.network.State("admin"), "c", file); err != nil {
		t.Fatal(err)
	}
	v.network = mem.NewNetwork()
	v.refuses(s, "restore it from its copy")
	v.network = mem.NewNetwork()
	if _, err := member.Restore(t.Context(), v.network.State("admin"), "c", file); err != nil {
		t.Fatal(err)
	}
	v.owns(s)
	v.lane(s, func(c *backstoretest.Client) {
		if got := c.Read(v, 0, len(data)); !bytes.Equal(got, data) {
			t.Errorf("found %.10x, expected what was written", got)
		}
	})
}
