package link_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/cluster/link"
	"lunar/internal/eventually"
)

// authority issues certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.issue(&x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue signs a certificate: its own, if there is none yet.
func (a *authority) issue(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.NotAfter, c.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), time.Now().Add(time.Hour), true
	by, with := c, key
	if a.cert != nil {
		by, with = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), with)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// node returns the credentials of a node, as lunar cluster init and join make them.
func (a *authority) node(name string) func() (*tls.Config, error) {
	cert, key := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return func() (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}, RootCAs: pool}, nil
	}
}

// overTLS are the links of a node on loopback, and where it is reached. A node on a busy machine may
// be silent for long.
func overTLS(t testing.TB, name string, credentials func() (*tls.Config, error)) (*link.Links, string) {
	t.Helper()
	transport, err := link.OverTLS("127.0.0.1:0", credentials)
	if err != nil {
		t.Fatal(err)
	}
	l := link.New(link.Config{
		Cluster: "test", Node: name, Incarnation: name + ".1", Transport: transport,
		Beat: 20 * time.Millisecond, Silence: eventually.Patience, Logger: slog.New(slog.DiscardHandler),
	})
	l.Handle(link.Command, echo)
	l.Open()
	t.Cleanup(func() { l.Close() })
	return l, transport.Listener.Addr().String()
}

// TestStrangers: strangers who say nothing, however many, and who come again at once, keep no node
// out.
func TestStrangers(t *testing.T) {
	a := newAuthority(t)
	l1, at1 := overTLS(t, "n1", a.node("n1"))
	l2, at2 := overTLS(t, "n2", a.node("n2"))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	t.Cleanup(cancel)
	var held atomic.Int32
	for i := range 100 {
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i), 1)}}
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := from.DialContext(ctx, "tcp", at2)
				if err != nil {
					continue
				}
				held.Add(1)
				stop := context.AfterFunc(ctx, func() { c.Close() })
				_, _ = c.Read(make([]byte, 1))
				stop()
				c.Close()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	eventually.Holds(t, "all places are taken", func() bool { return held.Load() > 100 })
	l2.SetNodes(map[string]link.Address{"n1": {At: at1}})
	l1.SetNodes(map[string]link.Address{"n2": {At: at2}})
	eventually.Holds(t, "the node is linked", func() bool { return l1.Up("n2") })
}

// Nodes of one authority are linked. Who has a certificate of another one, of another name than
// it should, or none, is not.
func TestOverTLS(t *testing.T) {
	a := newAuthority(t)
	l1, _ := overTLS(t, "n1", a.node("n1"))
	_, at2 := overTLS(t, "n2", a.node("n2"))
	_, stranger := overTLS(t, "n3", newAuthority(t).node("n3"))
	l1.SetNodes(map[string]link.Address{"n2": {At: at2}, "n3": {At: stranger}, "n4": {At: at2}})
	eventually.Holds(t, "the node is linked", func() bool { return l1.Up("n2") })
	got, err := l1.Call(t.Context(), "n2", link.Message{Kind: link.Command, Body: [][]byte{[]byte("hello")}})
	if err != nil || string(got) != "hello" {
		t.Errorf("found %q, %v", got, err)
	}
	why := func(node string) string {
		for _, s := range l1.Status() {
			if s.Node == node {
				return s.Why
			}
		}
		return ""
	}
	// On a busy machine an attempt may have ended before that was found.
	eventually.Says(t, func() string { return why("n3") }, "unknown authority")
	eventually.Says(t, func() string { return why("n4") }, `found the certificate of node "n2", expected that of "n4"`)
	bare := &tls.Config{InsecureSkipVerify: true} // whose server it is does not matter here
	if c, err := (&tls.Dialer{Config: bare}).DialContext(t.Context(), "tcp", at2); err == nil {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err = c.Read(make([]byte, 1)); err == nil {
			t.Error("one without a certificate was answered")
		}
		c.Close()
	}
}

// BenchmarkCall has calls beside those of a bare echo over TLS, one at a time and many.
func BenchmarkCall(b *testing.B) {
	a := newAuthority(b)
	l1, _ := overTLS(b, "n1", a.node("n1"))
	_, at := overTLS(b, "n2", a.node("n2"))
	l1.SetNodes(map[string]link.Address{"n2": {At: at}})
	eventually.Holds(b, "the node is linked", func() bool { return l1.Up("n2") })
	for _, size := range []struct {
		name  string
		bytes int
	}{{"4KiB", 4 << 10}, {"256KiB", 256 << 10}} {
		body := make([]byte, size.bytes)
		for name, depth := range map[string]int{"one": 1, "32": 32} {
			b.Run("link/"+size.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				slots := make(chan struct{}, depth)
				for i := 0; b.Loop(); i++ {
					slots <- struct{}{}
					err := l1.Start("n2", link.Message{Kind: link.Command, Lane: uint32(i), Room: len(body), Body: [][]byte{body}}, func(_ []byte, err error) {
						if err != nil {
							b.Error(err)
						}
						<-slots
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				for range depth {
					slots <- struct{}{}
				}
			})
		}
		b.Run("bare/"+size.name+"/one", func(b *testing.B) { bareEcho(b, a, body) })
	}
}

// bareEcho sends a body over a connection of TLS and reads it back.
func bareEcho(b *testing.B, a *authority, body []byte) {
	transport, err := link.OverTLS("127.0.0.1:0", a.node("n3"))
	if err != nil {
		b.Fatal(err)
	}
	defer transport.Listener.Close()
	go func() {
		c, err := transport.Listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := make([]byte, len(body))
		for {
			if _, err := io.ReadFull(c, in); err != nil {
				return
			}
			if _, err := c.Write(in); err != nil {
				return
			}
		}
	}()
	near, err := link.OverTLS("127.0.0.1:0", a.node("n1"))
	if err != nil {
		b.Fatal(err)
	}
	defer near.Listener.Close()
	c, err := near.Dial(context.Background(), "n3", transport.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	in := make([]byte, len(body))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(body); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, in); err != nil {
			b.Fatal(err)
		}
	}
}
