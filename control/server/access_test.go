package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/control"
	"lunar/control/token"
	"lunar/internal/refusals"
)

// remote is a server that is asked over TCP, with a token for each role.
type remote struct {
	*Server
	url     string
	trusted *x509.CertPool
	tokens  map[control.Role]string
	counts  *refusals.Counters
	access  Access
}

func serveRemote(t *testing.T) *remote {
	t.Helper()
	return serveRemoteOf(t, Config{Source: fixed(sample())})
}

// serveRemoteOf serves what c says at a socket and at a port of its own.
func serveRemoteOf(t *testing.T, c Config) *remote {
	t.Helper()
	dir := t.TempDir()
	r := &remote{tokens: map[control.Role]string{}, counts: &refusals.Counters{}}
	p := ControlPort{Address: "127.0.0.1:0", Certificate: filepath.Join(dir, "pem"), Key: filepath.Join(dir, "key"), Tokens: filepath.Join(dir, "tokens"),
		ClientCA: filepath.Join(dir, "ca"), Clients: map[string]control.Role{"reader.example.org": control.Read, "ops": control.Operate, "urn:admin": control.Admin}}
	r.trusted = certify(t, p.Certificate, p.Key, 1)
	writeFile(t, p.ClientCA, string(authority(t).pem))
	for _, role := range control.Roles() {
		text, e, err := token.New(role, role.String())
		if err != nil {
			t.Fatal(err)
		}
		if err := token.Add(p.Tokens, e); err != nil {
			t.Fatal(err)
		}
		r.tokens[role] = text
	}
	r.access = Access{Port: p}
	c.Socket, c.MaxFile, c.Access, c.Refusals = filepath.Join(dir, control.SocketName), 1<<20, r.access, r.counts
	r.Server = start(t, c)
	r.url = "https://" + r.ControlAddr().String()
	return r
}

// dial returns a client with the token of a role.
func (r *remote) dial(t *testing.T, role control.Role) *control.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	writeFile(t, file, r.tokens[role])
	c, err := control.DialRemote(control.Remote{URL: r.url, Token: file, CA: r.access.Port.Certificate})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask returns the status of a request with a token, a certificate or neither.
func (r *remote) ask(t *testing.T, method, path, body, token string, certificates ...tls.Certificate) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.trusted, Certificates: certificates}, DisableKeepAlives: true}}
	q, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.Do(q)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// operation is one of the API's description.
type operation struct{ id, method, path string }

// operations are all that the API has.
func operations(t *testing.T) (all []operation) {
	t.Helper()
	_, c := serve(t, sample())
	_, _, text := request(t, c, http.MethodGet, "http://x/openapi.json")
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		path = strings.NewReplacer("{name}", "v", "{group}", "a", "{id}", "1", "{user}", "u", "{lun}", "0", "{section}", "log").Replace(path)
		for method, o := range methods {
			all = append(all, operation{o.OperationID, strings.ToUpper(method), path})
		}
	}
	return all
}

// TestRoles: every operation has a role, none that changes something is a reader's, and
// the server lets through whose role suffices, and nobody else, for all operations and
// roles.
func TestRoles(t *testing.T) {
	r := serveRemote(t)
	listed := map[string]bool{}
	for _, o := range operations(t) {
		needs, known := roleOf(o.id)
		if listed[o.id] = true; !known {
			t.Errorf("%s %s: found operation %q without a role, expected a row in roles", o.method, o.path, o.id)
			continue
		}
		if (o.method == http.MethodGet) != (needs == control.Read) {
			t.Errorf("%s %s: found role %v, expected that readers only read, and whoever reads is one", o.method, o.path, needs)
		}
		for _, role := range control.Roles() {
			code := r.ask(t, o.method, o.path, bodies[o.id], r.tokens[role])
			if refused := code == http.StatusForbidden || code == http.StatusUnauthorized; refused != (role < needs) || code == 0 {
				t.Errorf("%s %s as %v: found %d, expected it to need %v", o.method, o.path, role, code, needs)
			}
		}
		if code := r.ask(t, o.method, o.path, bodies[o.id], ""); code != http.StatusUnauthorized {
			t.Errorf("%s %s of a stranger: found %d", o.method, o.path, code)
		}
	}
	for id := range roles {
		if !listed[id] {
			t.Errorf("roles has %q, which is no operation", id)
		}
	}
	for _, path := range []string{metricsPath, "/openapi.json"} {
		if code := r.ask(t, "GET", path, "", ""); code != http.StatusUnauthorized {
			t.Errorf("%s of a stranger: found %d", path, code)
		}
		if code := r.ask(t, "GET", path, "", r.tokens[control.Read]); code != http.StatusOK {
			t.Errorf("%s of a reader: found %d", path, code)
		}
	}
}

// TestTokens: a wrong token is nobody's, is counted, and one that was removed or whose file
// is broken counts no longer.
func TestTokens(t *testing.T) {
	r := serveRemote(t)
	good := r.tokens[control.Admin]
	wrong := []string{"x", good[1:], good + "0", strings.ToUpper(good)}
	for _, sent := range wrong {
		if code := r.ask(t, "GET", "/v1/cache", "", sent); code != http.StatusUnauthorized {
			t.Errorf("found %d", code)
		}
	}
	if got := r.counts.Of(refusals.ControlToken); got != uint64(len(wrong)) {
		t.Errorf("found %d counted, expected %d", got, len(wrong))
	}
	if code := r.ask(t, "GET", "/v1/cache", "", good); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	if err := token.Remove(r.access.Port.Tokens, "admin"); err != nil {
		t.Fatal(err)
	}
	if code := r.ask(t, "GET", "/v1/cache", "", good); code != http.StatusUnauthorized {
		t.Errorf("a token that was removed: found %d", code)
	}
	writeFile(t, r.access.Port.Tokens, "read\n")
	if code := r.ask(t, "GET", "/v1/cache", "", r.tokens[control.Read]); code != http.StatusUnauthorized {
		t.Errorf("a broken file: found %d", code)
	}
	if err := r.SetAccess(r.access); err == nil || !strings.Contains(err.Error(), "line 1: found 1 words") {
		t.Errorf("a broken file is taken: %v", err)
	}
}

// issuer is a certificate authority.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

var ca *issuer

func authority(t *testing.T) *issuer {
	t.Helper()
	if ca == nil {
		ca = newAuthority(t)
	}
	return ca
}

func newAuthority(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(9), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{c, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue makes a client's certificate.
func (i *issuer) issue(t *testing.T, template x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.ExtKeyUsage = big.NewInt(10), []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, i.certificate, &key.PublicKey, i.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestCertificates: a client's certificate has the role of its name, if the authority is
// trusted and time has not passed.
func TestCertificates(t *testing.T) {
	r := serveRemote(t)
	trusted := authority(t)
	kick := func(c ...tls.Certificate) int {
		return r.ask(t, "POST", control.KickPath, bodies["post-kick"], "", c...)
	}
	read := func(c ...tls.Certificate) int { return r.ask(t, "GET", "/v1/cache", "", "", c...) }
	reader := trusted.issue(t, x509.Certificate{DNSNames: []string{"other", "reader.example.org"}})
	ops := trusted.issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "ops"}})
	if code := read(reader); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	if code := kick(reader); code != http.StatusForbidden {
		t.Errorf("a reader kicks: found %d", code)
	}
	if code := kick(ops); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	if code := read(trusted.issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "nobody"}})); code != http.StatusUnauthorized {
		t.Errorf("of a name in no list: found %d", code)
	}
	if code := r.ask(t, "GET", "/v1/cache", "", "wrong", ops); code != http.StatusUnauthorized {
		t.Errorf("with a wrong token: found %d", code)
	}
	for what, c := range map[string]tls.Certificate{
		"another authority's": newAuthority(t).issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "ops"}}),
		"expired":             trusted.issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "ops"}, NotAfter: time.Now().Add(-time.Minute)}),
	} {
		if code := read(c); code != 0 {
			t.Errorf("%s: found %d", what, code)
		}
	}
	if code := read(); code != http.StatusUnauthorized {
		t.Errorf("without any: found %d", code)
	}
}

// as runs f on a thread of its own that belongs to another user.
func as(t *testing.T, uid, gid int, groups []uint32, f func()) {
	t.Helper()
	done := make(chan unix.Errno)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		list := append([]uint32{}, groups...)
		_, _, e1 := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(list)), pointer(list), 0)
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid))
		_, _, e3 := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if e := max(e1, e2, e3); e != 0 {
			done <- e
			return
		}
		f()
		done <- 0
	}()
	if e := <-done; e != 0 {
		t.Fatal(e)
	}
}

// TestGroups: on the socket a user has the role of its best group, as it was when it
// connected; others are turned away and counted. A change of the groups counts at once.
func TestGroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be other users")
	}
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	counts := &refusals.Counters{}
	socket := filepath.Join(dir, control.SocketName)
	access := Access{Groups: map[uint32]control.Role{5001: control.Read, 5002: control.Operate, 5003: control.Admin, overflow: control.Admin}}
	s := start(t, Config{Socket: socket, Source: fixed(sample()), Access: access, Refusals: counts})
	ask := func(gid int, groups []uint32, o operation) (code int) {
		as(t, 4711, gid, groups, func() {
			conn := connect(t, socket)
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
			r, err := http.NewRequest(o.method, "http://x"+o.path, strings.NewReader(bodies[o.id]))
			if err != nil {
				return
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := c.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
			code = answer.StatusCode
		})
		return code
	}
	read, kick := operation{"", "GET", "/v1/cache"}, operation{"post-kick", "POST", control.KickPath}
	clear := operation{"clear-reservations", "DELETE", strings.ReplaceAll(control.ClearPath, "{name}", "v")}
	many := make([]uint32, 0, 300) // more than are asked for at first
	for g := range uint32(299) {
		many = append(many, 6000+g)
	}
	for _, test := range []struct {
		gid    int
		groups []uint32
		o      operation
		code   int
	}{
		{4711, nil, read, http.StatusForbidden},
		{4711, []uint32{4712}, kick, http.StatusForbidden},
		{overflow, []uint32{overflow}, read, http.StatusForbidden},
		{5001, nil, read, http.StatusOK},
		{4711, []uint32{5001}, read, http.StatusOK},
		{4711, []uint32{5001}, kick, http.StatusForbidden},
		{5001, []uint32{5002}, kick, http.StatusOK},
		{4711, append(many, 5002), kick, http.StatusOK},
		{4711, []uint32{5002}, clear, http.StatusForbidden},
		{4711, []uint32{5003, 5001}, clear, http.StatusOK},
	} {
		if code := ask(test.gid, test.groups, test.o); code != test.code {
			t.Errorf("%+v: found %d", test, code)
		}
	}
	if got := counts.Of(refusals.ControlUser); got != 3 {
		t.Errorf("found %d counted, expected 3", got)
	}
	if err := s.SetAccess(Access{Groups: map[uint32]control.Role{5009: control.Read}}); err != nil {
		t.Fatal(err)
	}
	if code := ask(4711, []uint32{5003}, read); code != http.StatusForbidden {
		t.Errorf("a group of before: found %d", code)
	}
	if err := s.SetAccess(Access{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("found %v, %v, expected mode 600 without groups", info, err)
	}
}

// connect connects on the thread that calls it, and not on another one of the process.
func connect(t *testing.T, socket string) net.Conn {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: socket}); err != nil {
		t.Error(err)
	}
	f := os.NewFile(uintptr(fd), socket)
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		t.Error(err)
	}
	return c
}

// TestControlPortMoves: it moves while it is served, and a mistake leaves it where it was.
func TestControlPortMoves(t *testing.T) {
	r := serveRemote(t)
	bad := r.access
	bad.Port.Key = bad.Port.Certificate
	if err := r.SetAccess(bad); err == nil {
		t.Error("a certificate is taken for a key")
	}
	if code := r.ask(t, "GET", "/v1/cache", "", r.tokens[control.Read]); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	was := r.ControlAddr().String()
	if err := r.SetAccess(Access{}); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", was); err == nil {
		c.Close()
		t.Error("it is served still")
	}
	if err := r.SetAccess(r.access); err != nil {
		t.Fatal(err)
	}
	r.url = "https://" + r.ControlAddr().String()
	if code := r.ask(t, "GET", "/v1/cache", "", r.tokens[control.Read]); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	plain := fmt.Sprint("http", strings.TrimPrefix(r.url, "https"))
	if rsp, err := http.Get(plain + "/v1/cache"); err == nil {
		rsp.Body.Close()
		if rsp.StatusCode == http.StatusOK {
			t.Error("it is served in clear")
		}
	}
}
