package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})))
}

// TestAccess: a file that is applied opens the API over TLS to who has a token, which
// lunar makes and sends; what is not allowed is refused; each change is in the audit file,
// and whatever does not fit leaves the server as it was.
func TestAccess(t *testing.T) {
	l := serveLive(t, liveConfig)
	in := func(name string) string { return filepath.Join(l.dir, name) }
	selfSigned(t, in("pem"), in("key"))
	tokens := func(args ...string) string {
		var out eventually.Output
		if status := run(t.Context(), append([]string{"token"}, args...), cli.Console{Out: &out, Err: &out}); status != cli.ExitOK {
			t.Fatalf("token %q: %s", args, out.String())
		}
		return out.String()
	}
	secrets := map[string]string{}
	for _, role := range []string{"read", "admin"} {
		secrets[role] = tokens("create", in("tokens"), "my-"+role, "--role", role)
		writeFile(t, in(role), secrets[role])
	}
	l.has(tokens("list", in("tokens")), "my-read", "my-admin")
	section := "server: {control: {listen: \"127.0.0.1:0\", certificate-file: " + in("pem") + ", key-file: " + in("key") + ", token-file: " + in("tokens") + ", audit-file: " + in("audit") + "}}\n"
	writeFile(t, l.file, liveConfig+section)
	l.tgtd(cli.ExitOK, "apply", l.file)
	address := regexp.MustCompile(`control API over TLS" address=(\S+)`)
	eventually.Holds(t, "the address", func() bool { return address.MatchString(l.log.String()) })
	server := "https://" + address.FindStringSubmatch(l.log.String())[1]
	by := func(status int, role string, args ...string) string {
		return l.tgtd(status, append(args, "--server", server, "--ca", in("pem"), "--token-file", in(role))...)
	}
	l.has(by(cli.ExitOK, "read", "status"), "ram")
	l.has(by(cli.ExitFailure, "read", "rescan", "ram"), "found token my-read at 127.0.0.1:", "with role read, expected role operate")
	by(cli.ExitOK, "admin", "drain", "a")
	eventually.Says(t, func() string { text, _ := os.ReadFile(in("audit")); return string(text) },
		`"by":{"kind":"token","name":"my-admin","address":"127.0.0.1:`, `"what":"POST /v1/drain {\"portal\":\"a\"}","outcome":"done"`)
	writeFile(t, in("wrong"), strings.Repeat("0", 64))
	l.has(by(cli.ExitFailure, "wrong", "status"), "found a wrong token")
	l.has(l.tgtd(cli.ExitUnreachable, "status", "--server", server), "--ca names the certificates to trust")
	for section, want := range map[string]string{
		strings.Replace(section, "tokens", "none", 1):              "server.control.token-file",
		"server: {control: {read-group: no-such-group-here}}\n":    "found no group no-such-group-here",
		strings.Replace(section, in("audit"), in("audit")+"/x", 1): "server.control.audit-file",
	} {
		writeFile(t, l.file, liveConfig+section)
		l.has(l.tgtd(cli.ExitFailure, "apply", l.file), want)
		l.has(by(cli.ExitOK, "read", "status"), "ram")
	}
	l.has(l.metrics(), `lunar_refusals_total{reason="control-token"} 1`)
	for what, secret := range secrets {
		if s := strings.TrimSpace(secret); strings.Contains(l.log.String(), s) || strings.Contains(l.tgtd(cli.ExitOK, "config"), s) {
			t.Errorf("the token of %s is told", what)
		}
	}
	writeFile(t, l.file, liveConfig)
	l.tgtd(cli.ExitOK, "apply", l.file)
	by(cli.ExitUnreachable, "read", "status")
}
