package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Remote says how a server is asked over TCP.
type Remote struct {
	URL         string // https://host:port
	Token       string // file whose first line is a token; empty: none
	CA          string // file of the certificates that the server's is judged by, PEM; empty: the system's
	Certificate string // file of the client's certificate chain, PEM; empty: none
	Key         string // file of its private key, PEM
}

// maxToken bounds what is read of a token's file, in bytes.
const maxToken = 4096

// Host is host:port of the URL, unless that is none of a server.
func (r *Remote) Host() (string, error) {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("found server %q, expected https://host:port", r.URL)
	}
	return u.Host, nil
}

// DialRemote returns a client of a server over TCP, after it has tried whether there is
// one: if not, the error is ErrNoAnswer. Close the Client.
func DialRemote(r Remote) (*Client, error) {
	host, err := r.Host()
	if err != nil {
		return nil, err
	}
	config, err := r.tls()
	if err != nil {
		return nil, err
	}
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: connectTimeout}, Config: config}
	ctx, cancel := context.WithTimeout(context.Background(), 2*connectTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w%s", ErrNoAnswer, r.URL, err, certificateAdvice(err))
	}
	conn.Close()
	return newClient("server "+host, "https://"+host, &authorized{token, &http.Transport{TLSClientConfig: config}}), nil
}

func certificateAdvice(err error) string {
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return "; --ca names the certificates to trust"
	}
	return ""
}

func (r *Remote) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if r.CA != "" {
		text, err := os.ReadFile(r.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: found no certificate", r.CA)
		}
	}
	if r.Certificate != "" || r.Key != "" {
		own, err := tls.LoadX509KeyPair(r.Certificate, r.Key)
		if err != nil {
			return nil, fmt.Errorf("the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

func (r *Remote) token() (string, error) {
	if r.Token == "" {
		return "", nil
	}
	f, err := os.Open(r.Token)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("%s: found mode %04o, expected a file that others cannot read (chmod o= %s)", r.Token, info.Mode().Perm(), r.Token)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("%s: found no token in its first line", r.Token)
	}
	return line, nil
}

// authorized sends a token with each request.
type authorized struct {
	token string
	*http.Transport
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.Transport.RoundTrip(r)
}
