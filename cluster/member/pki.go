package member

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"lunar/internal/durable"
)

// authority is the cluster's own, which every member has: who joins gets a certificate of
// the member that admits it.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// The authority lasts for longer than machines. The certificate of a node does not, and its
// member makes another one when a third of the time is left (Dir.Renew). A clock that is wrong
// by some hours hurts nobody.
const (
	authorityTime = 30 * 365 * 24 * time.Hour
	nodeTime      = 2 * 365 * 24 * time.Hour
	leeway        = 48 * time.Hour
)

// template has what both kinds of certificates have.
func template(name string, now time.Time, lifetime time.Duration) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"Lunar"}, CommonName: name},
		NotBefore: now.Add(-leeway), NotAfter: now.Add(lifetime), BasicConstraintsValid: true,
	}
}

// newAuthority makes that of a cluster, and its two files.
func newAuthority(cluster string) (*authority, map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	t := template(cluster, time.Now(), authorityTime)
	t.IsCA, t.KeyUsage = true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	private, err := privateText(key)
	return &authority{cert, key}, map[string][]byte{authorityFile: certText(der), signingFile: private}, err
}

// authority reads that of the directory.
func (d Dir) authority() (*authority, error) {
	certText, err := durable.Read(d.path(authorityFile))
	if err != nil {
		return nil, err
	}
	keyText, err := durable.Read(d.path(signingFile))
	if err != nil {
		return nil, err
	}
	a, err := authorityOf(certText, keyText)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return a, nil
}

func authorityOf(certText, keyText []byte) (*authority, error) {
	pair, err := tls.X509KeyPair(certText, keyText)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("found another certificate, expected the cluster's authority")
	}
	return &authority{pair.Leaf, key}, nil
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// pinOf is by what a token names an authority.
func pinOf(cert *x509.Certificate) []byte {
	sum := sha256.Sum256(cert.Raw)
	return sum[:]
}

// issue makes the certificate of a node, which serves and asks by it. It does not outlast the
// authority.
func (a *authority) issue(n Node, public any, now time.Time) ([]byte, error) {
	t := template(n.Name, now, nodeTime)
	if t.NotAfter.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	t.DNSNames, t.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	if ip := net.ParseIP(n.Address); ip != nil {
		t.IPAddresses = append(t.IPAddresses, ip)
	} else {
		t.DNSNames = append(t.DNSNames, n.Address)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, public, a.key)
	if err != nil {
		return nil, err
	}
	return certText(der), nil
}

// newKey makes the key of a node.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	text, err := privateText(key)
	return key, text, err
}

func certText(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func privateText(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// privateOf reads what privateText writes.
func privateOf(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errNoKey
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err == nil && !ok {
		err = errNoKey
	}
	return key, err
}

// errNoKey: a file is none of a key.
var errNoKey = errors.New("found no ECDSA key in PEM")

// pinned believes a server whose authority has a pin.
func pinned(pin []byte) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // nobody who joins has the authority yet: VerifyConnection knows it by its pin
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, cert := range s.PeerCertificates[1:] {
				if !bytes.Equal(pinOf(cert), pin) {
					continue
				}
				_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: (&authority{cert: cert}).pool()})
				return err
			}
			return errForeign
		},
	}
}

// errForeign: who answers where a token leads to is of another cluster.
var errForeign = errors.New("found another cluster's certificate, expected that of the token's")
