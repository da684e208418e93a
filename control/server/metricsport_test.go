package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/control"
	"lunar/internal/refusals"
)

const goodToken = "0123456789abcdef0123456789abcdef"

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// certify writes a certificate of its own, and returns who trusts it.
func certify(t *testing.T, certificate, key string, number int64) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
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
	pool := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(leaf)
	return pool
}

// ask returns the status of a scrape with a token, or 0 if there is none.
func ask(t *testing.T, url, authorization string, trusted *x509.CertPool) int {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true}}
	r, err := http.NewRequest("GET", url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// TestMetricsToken: who has not the token gets nothing, is counted, and fills no log.
// Another token in the file is the token from then on, and without the file there is
// none.
func TestMetricsToken(t *testing.T) {
	dir := t.TempDir()
	token, count := filepath.Join(dir, "token"), &refusals.Counters{}
	writeFile(t, token, goodToken+"\nanother line\n")
	s := start(t, Config{Socket: filepath.Join(dir, control.SocketName), Metrics: MetricsPort{Address: "127.0.0.1:0", Token: token}, Source: fixed(sample()), Refusals: count})
	url := "http://" + s.MetricsAddr().String()
	wrong := []string{"", "Bearer", "Bearer ", "Bearer " + goodToken[1:], "Bearer " + goodToken + "0", "Basic " + goodToken, goodToken, "Bearer another line"}
	for _, sent := range wrong {
		if code := ask(t, url, sent, nil); code != http.StatusUnauthorized {
			t.Errorf("%q: found %d", sent, code)
		}
	}
	if got := count.Of(refusals.MetricsToken); got != uint64(len(wrong)) {
		t.Errorf("found %d counted, expected %d", got, len(wrong))
	}
	if code := ask(t, url, "Bearer "+goodToken, nil); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	other := strings.Repeat("x", minToken)
	writeFile(t, token, other)
	if code := ask(t, url, "Bearer "+goodToken, nil); code != http.StatusUnauthorized {
		t.Errorf("the token of before: found %d", code)
	}
	if code := ask(t, url, "Bearer "+other, nil); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if code := ask(t, url, "Bearer "+other, nil); code != http.StatusUnauthorized {
		t.Errorf("without the file: found %d", code)
	}
}

// TestMetricsTLS: over TLS alone; a certificate that is renewed holds from the next
// client on, and one that is half renewed does not stop the one before.
func TestMetricsTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "pem"), filepath.Join(dir, "key")
	trusted := certify(t, certificate, key, 1)
	s := start(t, Config{Socket: filepath.Join(dir, control.SocketName), Metrics: MetricsPort{Address: "127.0.0.1:0", Certificate: certificate, Key: key}, Source: fixed(sample())})
	at := s.MetricsAddr().String()
	if code := ask(t, "https://"+at, "", trusted); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	if code := ask(t, "http://"+at, "", nil); code == http.StatusOK {
		t.Error("they are served in clear")
	}
	if old, err := tls.Dial("tcp", at, &tls.Config{RootCAs: trusted, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		old.Close()
		t.Error("TLS 1.1 is taken")
	}
	renewed := certify(t, certificate, filepath.Join(dir, "renewed"), 2)
	if code := ask(t, "https://"+at, "", trusted); code != http.StatusOK {
		t.Errorf("half renewed: found %d", code)
	}
	if err := os.Rename(filepath.Join(dir, "renewed"), key); err != nil {
		t.Fatal(err)
	}
	if code := ask(t, "https://"+at, "", renewed); code != http.StatusOK {
		t.Errorf("renewed: found %d", code)
	}
}

// TestMetricsPortRefused: a mistake is told before anything changes.
func TestMetricsPortRefused(t *testing.T) {
	dir := t.TempDir()
	short, open := filepath.Join(dir, "short"), filepath.Join(dir, "open")
	writeFile(t, short, "hunter2\n")
	writeFile(t, open, goodToken)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Socket: filepath.Join(dir, control.SocketName), Metrics: MetricsPort{Address: "127.0.0.1:0"}, Source: fixed(sample())})
	was := s.MetricsAddr().String()
	for want, p := range map[string]MetricsPort{
		"found a token of 7 bytes": {Address: "127.0.0.1:0", Token: short},
		"chmod o=":                 {Address: "127.0.0.1:0", Token: open},
		"no such file":             {Address: "127.0.0.1:0", Token: filepath.Join(dir, "missing")},
		"server.metrics-key-file":  {Address: "127.0.0.1:0", Certificate: short, Key: short},
	} {
		if err := s.MoveMetrics(p); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("found %v, expected %q", err, want)
		}
	}
	if code := ask(t, "http://"+was, "", nil); code != http.StatusOK {
		t.Errorf("where they were: found %d", code)
	}
}
