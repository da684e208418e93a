package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/control"
	"lunar/control/token"
	"lunar/scripts/evidence/daemon"
)

// config has a promise, limits of an initiator and of a group, and a cache that writes back.
const config = `
server:
  threads: 2
  control:
    listen: 127.0.0.1:PORT
    certificate-file: DIR/pem
    key-file: DIR/key
    token-file: DIR/tokens
    page: true
cache: {size: 64MiB, segment: DIR}
volumes:
  databases: {type: ram, size: 64MiB}
  logs: {type: file, path: DIR/logs.img, size: 64MiB, write: back, cache: true}
  archive: {type: file, path: DIR/archive.img, size: 64MiB, cache: true}
portal-groups: {lan: {listen: ["127.0.0.1:0"], tag: 1}}
targets:
  iqn.2026-11.example.san:disks: {luns: {0: databases, 1: logs, 2: archive}}
qos:
  groups: {batch: {initiators: ["iqn.2026-11.example:batch*"]}}
  rules:
    - {name: gold, initiators: ["iqn.2026-11.example:db1"], reservation: 2000}
    - {name: tests, initiators: ["iqn.2026-11.example:test*"], limit: 1200}
    - {name: nightly, group: batch, limit: 20MiB, weight: 2, class: low}
`

const target = "iqn.2026-11.example.san:disks"

// served is a server under load.
type served struct {
	*daemon.Server
	url, token string
	api        *control.Client
	portal     string
	loads      []*exec.Cmd
	dir        string
}

// serve starts a server with a page.
func serve(o options) (*served, error) {
	dir, err := os.MkdirTemp("/dev/shm", "see")
	if err != nil {
		return nil, err
	}
	s := &served{dir: dir}
	if err := s.start(o, dir); err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *served) start(o options, dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(l.Close(), certify(dir)); err != nil {
		return err
	}
	text, entry, err := token.New(control.Read, "browser")
	if err != nil {
		return err
	}
	s.token, s.url = text, "https://127.0.0.1:"+port
	if err := token.Add(filepath.Join(dir, "tokens"), entry); err != nil {
		return err
	}
	if s.Server, err = daemon.New(o.Tgtd, dir, strings.ReplaceAll(config, "PORT", port)); err != nil {
		return err
	}
	if s.portal, err = s.Server.Start(); err != nil {
		return err
	}
	s.api, err = control.Dial(s.Socket())
	return err
}

// certify makes a certificate for this machine.
func certify(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	c := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "see"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(dir, "key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// load lets an initiator work until the server ends.
func (s *served) load(ctx context.Context, binary, initiator string, lun int, flags ...string) error {
	args := append([]string{"--target", fmt.Sprintf("iscsi://%s/%s/%d", s.portal, target, lun), "--initiator", initiator, "--runtime", "10m"}, flags...)
	c := exec.CommandContext(ctx, filepath.Join(filepath.Dir(binary), "tgtload"), args...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return err
	}
	s.loads = append(s.loads, c)
	return nil
}

// work lets initiators of each kind work.
func (s *served) work(ctx context.Context, o options) error {
	return errors.Join(
		s.load(ctx, o.Tgtd, "iqn.2026-11.example:db1", 0, "--rate", "2500", "--bs", "4k", "--rw", "randrw", "--read-percent", "70"),
		s.load(ctx, o.Tgtd, "iqn.2026-11.example:test7", 1, "--rw", "randwrite", "--bs", "16k", "--depth", "8"),
		s.load(ctx, o.Tgtd, "iqn.2026-11.example:batch-2", 2, "--rw", "randread", "--bs", "64k", "--depth", "4"),
		s.load(ctx, o.Tgtd, "iqn.2026-11.example:web1", 2, "--rw", "randread", "--bs", "8k", "--rate", "300"),
	)
}

// trouble makes something red: a rule that is other than in the file, and a volume whose
// file somebody cut.
func (s *served) trouble(context.Context) error {
	if status, said := s.Lunar("qos", "set", "gold", "--reservation", "2200", "--socket", s.Socket()); status != 0 {
		return fmt.Errorf("lunar qos set: %s", said)
	}
	return os.Truncate(filepath.Join(s.dir, "archive.img"), 1<<20)
}

// end ends all of it.
func (s *served) end() {
	for _, c := range s.loads {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	if s.api != nil {
		s.api.Close()
	}
	if s.Server != nil && s.Process != nil {
		_ = s.Kill(syscall.SIGKILL)
	}
	os.RemoveAll(s.dir)
}
