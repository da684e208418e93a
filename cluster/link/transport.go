package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
)

// Transport makes connections whose ends have proved who they are.
type Transport struct {
	Listener net.Listener
	// Dial connects to the node at an address, which has proved to be it.
	Dial func(ctx context.Context, node, address string) (net.Conn, error)
	// Prove returns which node has made a connection that Listener has accepted.
	Prove func(ctx context.Context, c net.Conn) (node string, err error)
}

// OverTLS has nodes connect by TCP and TLS 1.3 at an address, and prove by certificates of
// their cluster's authority who they are: the common name of each is the node's. credentials
// returns them, as Certificates, and the authority, as RootCAs, and is asked at each connection.
func OverTLS(address string, credentials func() (*tls.Config, error)) (Transport, error) {
	if _, err := credentials(); err != nil {
		return Transport{}, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return Transport{}, err
	}
	server := &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c, err := credentials()
		if err != nil {
			return nil, err
		}
		return &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: c.Certificates, SessionTicketsDisabled: true,
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.RootCAs,
		}, nil
	}}
	return Transport{
		Listener: tls.NewListener(listener, server),
		Dial: func(ctx context.Context, node, address string) (net.Conn, error) {
			return dialTLS(ctx, node, address, credentials)
		},
		Prove: func(ctx context.Context, c net.Conn) (string, error) {
			t := c.(*tls.Conn)
			if err := t.HandshakeContext(ctx); err != nil {
				return "", err
			}
			return nameIn(t.ConnectionState()), nil
		},
	}, nil
}

func dialTLS(ctx context.Context, node, address string, credentials func() (*tls.Config, error)) (net.Conn, error) {
	c, err := credentials()
	if err != nil {
		return nil, err
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	t := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: c.Certificates,
		InsecureSkipVerify: true, // a node is known by its name, at whatever address: VerifyConnection does that
		VerifyConnection:   func(s tls.ConnectionState) error { return believe(c.RootCAs, s, node) },
	})
	if err := t.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return t, nil
}

// believe judges the certificate of a server that should be a node.
func believe(authority *x509.CertPool, s tls.ConnectionState, node string) error {
	between := x509.NewCertPool()
	for _, cert := range s.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	if _, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authority, Intermediates: between}); err != nil {
		return err
	}
	if name := nameIn(s); name != node {
		return fmt.Errorf("found the certificate of node %q, expected that of %q", name, node)
	}
	return nil
}

// nameIn is the node that a certificate is of.
func nameIn(s tls.ConnectionState) string { return s.PeerCertificates[0].Subject.CommonName }
