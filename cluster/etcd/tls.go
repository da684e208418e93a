package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Credentials are those for an etcd that is somebody else's: files of PEM. authority judges
// its certificates (empty: the system's), certificate and key are this node's (empty: it has
// none).
func Credentials(authority, certificate, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if authority != "" {
		text, err := os.ReadFile(authority)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: found no certificate, expected PEM", authority)
		}
	}
	if certificate == "" && key == "" {
		return c, nil
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	c.Certificates = []tls.Certificate{own}
	return c, nil
}
