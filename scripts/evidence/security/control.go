package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lunar/scripts/evidence/daemon"
)

// controlKeys is what security.yaml lacks for the control API over TLS.
const controlKeys = "  control: {listen: %s, certificate-file: DIR/control.pem, key-file: DIR/control.key, token-file: DIR/control.tokens}\n"

// controlTokens makes a certificate and a token for each role in a directory; none if the binary
// knows no tokens.
func controlTokens(binary, dir string) (map[string]string, error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), certificate(filepath.Join(dir, "control.pem"), filepath.Join(dir, "control.key"))); err != nil {
		return nil, err
	}
	all := map[string]string{"wrong": strings.Repeat("0", 64)}
	s := &daemon.Server{Binary: binary}
	for _, role := range []string{"read", "operate", "admin"} {
		code, said := s.Lunar("token", "create", filepath.Join(dir, "control.tokens"), role, "--role", role)
		if code != 0 {
			return nil, nil
		}
		all[role] = strings.TrimSpace(said)
	}
	return all, nil
}

// certificate writes one for the server's address, and its key.
func certificate(at, key string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.ParseIP(canaryAddress)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(at, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600))
}

// withControl adds the control API at a port to a configuration.
func withControl(config string, port int) string {
	return strings.Replace(config, "server:\n", "server:\n"+fmt.Sprintf(controlKeys, at(port)), 1)
}
