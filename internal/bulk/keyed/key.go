package keyed

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// KeySize is the length of a one-time key in bytes.
const KeySize = 32

// Key is the one-time key of a move.
type Key [KeySize]byte

// NewKey makes one.
func NewKey() (k Key) {
	_, _ = rand.Read(k[:]) // never fails
	return k
}

// Text is the key as people pass it on.
func (k Key) Text() string { return base64.RawURLEncoding.EncodeToString(k[:]) }

// Format keeps the key out of messages.
func (k Key) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("***")) }

// ParseKey reads the text of a key.
func ParseKey(text string) (k Key, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(raw) != KeySize {
		return k, errors.New("found no one-time key of 43 characters (lunar volume receive makes one)")
	}
	return Key(raw), nil
}

// The two sides, for the keys of their certificates.
const (
	sender   = "lunar bulk sender"
	receiver = "lunar bulk receiver"
)

// signing is the key of a side's certificate.
func (k Key) signing(side string) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, k[:], nil, side, ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// protocol is what both sides have to speak.
const protocol = "lunar-bulk/2"

// Config is the TLS of who receives.
func (k Key) Config() (*tls.Config, error) { return k.config(receiver, sender) }

// config is the TLS of one side, which takes the other side's certificate alone.
func (k Key) config(own, other string) (*tls.Config, error) {
	mine, err := k.signing(own)
	if err != nil {
		return nil, err
	}
	theirs, err := k.signing(other)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: own}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<34, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, mine.Public(), mine)
	if err != nil {
		return nil, err
	}
	want := theirs.Public().(ed25519.PublicKey)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: mine}},
		ClientAuth:   tls.RequireAnyClientCert,
		// No authority has signed these: the key itself is compared.
		InsecureSkipVerify: true,
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 || !want.Equal(c.PeerCertificates[0].PublicKey) {
				return errors.New("found another one-time key")
			}
			return nil
		},
	}, nil
}
