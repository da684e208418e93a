package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/control"
	"lunar/scripts/evidence/daemon"
)

// server is a real one, with its control API.
type server struct {
	*daemon.Server
	api    *control.Client
	portal string
}

func newServer(o options, dir, config string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := daemon.New(o.Tgtd, dir, config)
	if err != nil {
		return nil, err
	}
	return &server{Server: s}, nil
}

func (s *server) start() (err error) {
	if s.portal, err = s.Start(); err != nil {
		return err
	}
	s.api, err = control.Dial(s.Socket())
	return err
}

// end kills it.
func (s *server) end() {
	if s.api == nil {
		return
	}
	s.api.Close()
	s.api = nil
	_ = s.Kill(syscall.SIGKILL)
}

// pair is two servers, of which one has volumes.
type pair struct {
	from, to *server
	dir      string
	key      string
}

// newPair makes both, below a directory that ends with close.
func newPair(o options, at, volumes string) (*pair, error) {
	at, err := filepath.Abs(at)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(at, "lunar-bulk-")
	if err != nil {
		return nil, err
	}
	p := &pair{dir: dir}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	p.key = base64.RawURLEncoding.EncodeToString(key)
	p.from, err = newServer(o, filepath.Join(dir, "from"), volumes)
	if err == nil {
		p.to, err = newServer(o, filepath.Join(dir, "to"), emptyConfig)
	}
	if err == nil {
		err = os.WriteFile(p.keyFile(), []byte(p.key+"\n"), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return p, nil
}

// emptyConfig is that of the server that receives.
const emptyConfig = `# made by evidence-bulk
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {other: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.example:other": {luns: {0: other}}}
`

func (p *pair) keyFile() string { return filepath.Join(p.dir, "key") }

func (p *pair) close() error {
	p.from.end()
	p.to.end()
	return os.RemoveAll(p.dir)
}

// reception is a job of the receiving server's.
type reception struct {
	job string
	at  string // where it listens; empty: it has ended
}

// waiting is how a job says where it listens.
const waiting = "waits for the other server at "

// receive has a volume received, and returns when somebody may send it, or when it is there.
func (p *pair) receive(ctx context.Context, name string, standby bool) (*reception, error) {
	j, err := p.to.api.StartReceive(ctx, name, control.Receive{Path: p.place(name), Listen: "127.0.0.1:0", Key: p.key, Standby: standby})
	if err != nil {
		return nil, err
	}
	for {
		if j, err = p.to.api.Job(ctx, j.ID); err != nil {
			return nil, err
		}
		if j.Ended != nil {
			var out control.ReceivedVolume
			return &reception{job: j.ID}, j.Into(&out)
		}
		if j.Progress != nil {
			if _, at, found := strings.Cut(j.Progress.What, waiting); found {
				return &reception{j.ID, at}, nil
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// received awaits the end of a reception.
func (p *pair) received(ctx context.Context, r *reception) (out control.ReceivedVolume, err error) {
	j, err := p.to.api.Await(ctx, r.job, func(*control.Job) {})
	if err == nil {
		err = j.Into(&out)
	}
	return out, err
}

// source is the file of a volume that is sent.
func (p *pair) source(volume string) string { return filepath.Join(p.from.Dir, volume+".img") }

// place is where a volume is received; until it is whole, with partial behind it.
func (p *pair) place(name string) string { return filepath.Join(p.to.Dir, name+".img") }

const (
	partial = ".receiving"
	journal = ".receiving.journal"
)
