package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"lunar/control/token"
)

// entry is a ControlPort that is being served.
type entry struct {
	ControlPort
	server *Server
	tokens followed[[]token.Entry]
	chain  followed[*tls.Certificate]
	trust  followed[*x509.CertPool]
}

// newEntry reads the port's files, so that a mistake is told now.
func newEntry(p ControlPort, s *Server) (*entry, error) {
	e := &entry{ControlPort: p, server: s}
	e.chain.keeps = true
	if p.Address == "" {
		return e, nil
	}
	var errs []error
	if _, err := e.certificate(nil); err != nil {
		errs = append(errs, fmt.Errorf("control API (server.control.certificate-file, key-file): %w", err))
	}
	if _, err := e.entries(); err != nil {
		errs = append(errs, fmt.Errorf("control API (server.control.token-file): %w", err))
	}
	if _, err := e.pool(); err != nil {
		errs = append(errs, fmt.Errorf("control API (server.control.client-ca-file): %w", err))
	}
	return e, errors.Join(errs...)
}

// over puts TLS in front of a listener, by what is the entry when a client comes. Clients
// may have a certificate; one that is not trusted is refused. There are no tickets, by
// which one that is not trusted any more could come back.
func (s *Server) over(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		e := s.entry.Load()
		c := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: e.certificate, SessionTicketsDisabled: true}
		pool, err := e.pool()
		if pool != nil {
			c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, pool
		}
		return c, err
	}})
}

func (e *entry) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return e.chain.now(func() (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(e.Certificate, e.Key)
		return &c, err
	}, e.Certificate, e.Key)
}

func (e *entry) entries() ([]token.Entry, error) {
	if e.Tokens == "" {
		return nil, nil
	}
	return e.tokens.now(func() ([]token.Entry, error) { return token.Read(e.Tokens) }, e.Tokens)
}

// pool is nil if clients have no certificates.
func (e *entry) pool() (*x509.CertPool, error) {
	if e.ClientCA == "" {
		return nil, nil
	}
	return e.trust.now(func() (*x509.CertPool, error) {
		text, err := os.ReadFile(e.ClientCA)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s: found no certificate", e.ClientCA)
		}
		return pool, err
	}, e.ClientCA)
}

// caller is who makes a request: by its token if it has one, else by its certificate.
func (e *entry) caller(r *http.Request) Caller {
	c := Caller{Kind: "stranger", Address: r.RemoteAddr}
	if sent := r.Header.Get("Authorization"); sent != "" {
		entries, err := e.entries()
		if err != nil {
			e.server.journal.Logger("", false).Warn("tokens cannot be read: nobody has one", "err", err)
			return c
		}
		text, bearer := strings.CutPrefix(sent, "Bearer ")
		if found, ok := token.Find(entries, strings.TrimSpace(text)); ok && bearer {
			c.Kind, c.Name, c.Role = "token", found.Name, found.Role
		}
		return c
	}
	if !e.trusts(r.TLS.PeerCertificates) {
		return c
	}
	c.Kind = "certificate"
	names := namesOf(r.TLS.PeerCertificates[0])
	if len(names) > 0 {
		c.Name = names[0]
	}
	for _, name := range names {
		if role := e.Clients[name]; role > c.Role {
			c.Name, c.Role = name, role
		}
	}
	return c
}

// trusts judges a client's certificates as of now: those who trusted them when the
// connection began may not any more, and their time may have passed.
func (e *entry) trusts(chain []*x509.Certificate) bool {
	pool, err := e.pool()
	if err != nil || pool == nil || len(chain) == 0 {
		return false
	}
	o := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err = chain[0].Verify(o)
	return err == nil
}

// namesOf are the names that a certificate has: those of its subjectAltName, and its
// common name.
func namesOf(c *x509.Certificate) []string {
	names := append(append([]string{}, c.DNSNames...), c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}
