package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"lunar/internal/refusals"
)

// minToken is the length of a token in bytes that cannot be guessed.
const minToken = 16

// maxToken bounds what is read of its file, in bytes.
const maxToken = 4096

// guard is a MetricsPort that is being served.
type guard struct {
	MetricsPort
	server *Server
	token  followed[[sha256.Size]byte]
	chain  followed[*tls.Certificate]
	warned atomic.Int64 // when a refusal was logged, Unix time in seconds
}

// newGuard reads the port's files, so that a mistake is told now.
func newGuard(p MetricsPort, s *Server) (*guard, error) {
	g := &guard{MetricsPort: p, server: s}
	g.chain.keeps = true
	if p.Token != "" {
		if _, err := g.digest(); err != nil {
			return nil, fmt.Errorf("metrics (server.metrics-token-file): %w", err)
		}
	}
	if p.Certificate != "" {
		if _, err := g.certificate(nil); err != nil {
			return nil, fmt.Errorf("metrics (server.metrics-certificate-file, server.metrics-key-file): %w", err)
		}
	}
	return g, nil
}

// over puts TLS in front of a listener.
func (g *guard) over(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{GetCertificate: g.certificate, MinVersion: tls.VersionTLS12})
}

func (g *guard) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return g.chain.now(func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(g.Certificate, g.Key)
		return &c, err
	}, g.Certificate, g.Key)
}

func (g *guard) digest() ([sha256.Size]byte, error) {
	return g.token.now(func() ([sha256.Size]byte, error) { return readToken(g.Token) }, g.Token)
}

// readToken returns the digest of a token, which is as long for all of them.
func readToken(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return sum, err
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o007 != 0 {
		return sum, fmt.Errorf("%s: found %v, expected a file that others cannot read (chmod o= %s)", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return sum, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); len(line) < minToken {
		return sum, fmt.Errorf("%s: found a token of %d bytes, expected at least %d (openssl rand -hex 32)", path, len(line), minToken)
	}
	return sha256.Sum256([]byte(line)), nil
}

// only lets clients through that have the token. The comparison takes as long whatever
// they send.
func (g *guard) only(next http.Handler) http.Handler {
	if g.Token == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, err := g.digest()
		sent, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(strings.TrimSpace(sent)))
		if err == nil && bearer && subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			if p := placeOf(r.Context()); p != nil {
				p.proves()
			}
			next.ServeHTTP(w, r)
			return
		}
		if g.server.probes.brief(w, r) {
			return
		}
		g.refuse(r.RemoteAddr, err)
		w.Header().Set("WWW-Authenticate", `Bearer realm="metrics"`)
		http.Error(w, "metrics need the token of server.metrics-token-file", http.StatusUnauthorized)
	})
}

// refuse counts a refusal and logs at most one in a minute.
func (g *guard) refuse(peer string, err error) {
	g.server.refusals.Add(refusals.MetricsToken)
	now, last := time.Now().Unix(), g.warned.Load()
	if now-last < 60 || !g.warned.CompareAndSwap(last, now) {
		return
	}
	log := g.server.log.With("peer", peer)
	if err != nil { // of the token's file
		log = log.With("err", err)
	}
	log.Warn("metrics were asked for without their token")
}

// followed is what was made of files, made anew when one of them is another.
type followed[T any] struct {
	keeps bool // what there was while that fails: certificates and keys are replaced one by one
	mu    sync.Mutex
	files []fs.FileInfo
	value T
}

func (f *followed[T]) now(read func() (T, error), paths ...string) (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	files := make([]fs.FileInfo, len(paths))
	var failed error
	for i, path := range paths {
		info, err := os.Stat(path)
		files[i], failed = info, errors.Join(failed, err)
	}
	if failed == nil && f.same(files) {
		return f.value, nil
	}
	value, err := read()
	if err = errors.Join(failed, err); err == nil {
		f.value, f.files = value, files
		return value, nil
	}
	if f.keeps && f.files != nil {
		return f.value, nil
	}
	return value, err
}

func (f *followed[T]) same(files []fs.FileInfo) bool {
	if len(f.files) != len(files) {
		return false
	}
	for i, is := range files {
		if was := f.files[i]; !os.SameFile(was, is) || was.Size() != is.Size() || !was.ModTime().Equal(is.ModTime()) {
			return false
		}
	}
	return true
}
