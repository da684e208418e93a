package member

import (
	"crypto/x509"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/cluster/etcd"
	"lunar/internal/durable"
)

// madeMember is the directory of the first member of a cluster.
func madeMember(t *testing.T) Dir {
	t.Helper()
	d := Dir(filepath.Join(t.TempDir(), "etcd"))
	if err := d.Init("lab", Node{"n1", "127.0.0.1", DefaultPort}, DefaultPace, DefaultQuota); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRenew: a node's certificate is made anew when a third of its time is left, for the same
// key and by the same authority, and not before.
func TestRenew(t *testing.T) {
	d := madeMember(t)
	leaf := func() *x509.Certificate {
		t.Helper()
		c, err := d.certificate()
		if err != nil {
			t.Fatal(err)
		}
		return c.Leaf
	}
	first, now := leaf(), time.Now()
	if err := d.Renew(now.Add(nodeTime / 2)); err != nil || !leaf().Equal(first) {
		t.Errorf("it was renewed at half of its time: %v", err)
	}
	late := now.Add(nodeTime * 3 / 4)
	if err := d.Renew(late); err != nil {
		t.Fatal(err)
	}
	second := leaf()
	a, err := d.authority()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Verify(x509.VerifyOptions{Roots: a.pool(), DNSName: "127.0.0.1", CurrentTime: first.NotAfter.Add(time.Hour)}); err != nil {
		t.Errorf("after the end of the first one: %v", err)
	}
	if err := d.Renew(now.Add(authorityTime - time.Hour)); err != nil || !leaf().NotAfter.Equal(a.cert.NotAfter) {
		t.Errorf("found one until %v, expected %v, when its authority ends: %v", leaf().NotAfter, a.cert.NotAfter, err)
	}
	if err := d.Renew(now.Add(authorityTime + time.Hour)); err == nil || !strings.Contains(err.Error(), "authority was valid until") {
		t.Errorf("found %v", err)
	}
	if err := d.Renew(time.Unix(0, 0)); err != nil || !leaf().NotAfter.Equal(a.cert.NotAfter) {
		t.Errorf("a clock of before there was a cluster: found one until %v, %v", leaf().NotAfter, err)
	}
	if err := d.Renew(now); err != nil { // the clock was wrong when the last one was made
		t.Fatal(err)
	}
	if _, err := leaf().Verify(x509.VerifyOptions{Roots: a.pool(), CurrentTime: now}); err != nil {
		t.Errorf("after a clock that was put right: %v", err)
	}
	if err := durable.Replace(d.path(signingFile), []byte("none")); err != nil {
		t.Fatal(err)
	}
	if err := d.Renew(now); err != nil {
		t.Errorf("nothing is to be renewed: found %v", err)
	}
}

// TestNotHere: an address at which etcd could not listen is refused before anything is made.
func TestNotHere(t *testing.T) {
	for _, address := range []string{"192.0.2.77", "no such host"} {
		d := Dir(filepath.Join(t.TempDir(), "etcd"))
		err := d.Init("lab", Node{"n1", address, DefaultPort}, DefaultPace, DefaultQuota)
		if err == nil || !strings.Contains(err.Error(), "expected one of this machine") {
			t.Errorf("%s: found %v", address, err)
		}
		if _, err := d.Settings(); err == nil {
			t.Errorf("%s: it was made", address)
		}
	}
}

// TestDoors: a token names the members that have a vote, this one first.
func TestDoors(t *testing.T) {
	own := Node{"n2", "192.0.2.2", 7421}
	got := doors(own, []etcd.Member{
		{Name: "n1", Peers: []string{"https://192.0.2.1:7421"}},
		{Name: "n2", Peers: []string{"https://192.0.2.2:7421"}},
		{Name: "n3", Peers: []string{"https://[2001:db8::3]:9000"}},
		{Name: "n4", Peers: []string{"https://192.0.2.4:7421"}, Learner: true},
		{Peers: []string{"https://192.0.2.5:7421"}},
	})
	if want := []string{"192.0.2.2:7423", "192.0.2.1:7423", "[2001:db8::3]:9002"}; !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}
