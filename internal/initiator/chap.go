package initiator

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
)

// CHAP algorithm numbers (RFC 7143 section 12.1.3 and the IANA registry of PPP
// authentication algorithms).
const (
	CHAPMD5     = 5
	CHAPSHA1    = 6
	CHAPSHA256  = 7
	CHAPSHA3256 = 8
)

// CHAP holds the credentials of a login. Algorithms are offered in their order,
// SHA3-256, SHA-256, SHA1, MD5 when empty. With a MutualUser the target has to
// prove itself under that name with MutualSecret.
type CHAP struct {
	User         string
	Secret       []byte
	MutualUser   string
	MutualSecret []byte
	Algorithms   []int
}

// ErrMutualCHAP is returned, wrapped, when the target failed to prove itself.
var ErrMutualCHAP = errors.New("target failed mutual CHAP")

var chapHashes = map[int]func() hash.Hash{
	CHAPMD5:     md5.New,
	CHAPSHA1:    sha1.New,
	CHAPSHA256:  sha256.New,
	CHAPSHA3256: func() hash.Hash { return sha3.New256() },
}

// response computes H(identifier | secret | challenge) of RFC 1994.
func (c *CHAP) response(algorithm int, identifier byte, secret, challenge []byte) []byte {
	h := chapHashes[algorithm]()
	h.Write([]byte{identifier})
	h.Write(secret)
	h.Write(challenge)
	return h.Sum(nil)
}

func (c *CHAP) algorithms() []int {
	if len(c.Algorithms) == 0 {
		return []int{CHAPSHA3256, CHAPSHA256, CHAPSHA1, CHAPMD5}
	}
	return c.Algorithms
}

// offer is the value of CHAP_A.
func (c *CHAP) offer() string {
	var list []string
	for _, a := range c.algorithms() {
		list = append(list, strconv.Itoa(a))
	}
	return strings.Join(list, ",")
}

// chapChallenge is one side's question.
type chapChallenge struct {
	algorithm  int
	identifier byte
	challenge  []byte
}

// parseChallenge checks CHAP_A, CHAP_I and CHAP_C of the target.
func (c *CHAP) parseChallenge(keys Keys) (chapChallenge, error) {
	var q chapChallenge
	a, _ := keys.Get("CHAP_A")
	algorithm, err := number(a)
	if err != nil || !slices.Contains(c.algorithms(), algorithm) {
		return q, fmt.Errorf("CHAP_A=%q, expected one of %s", a, c.offer())
	}
	i, _ := keys.Get("CHAP_I")
	identifier, err := number(i)
	if err != nil || identifier > 255 {
		return q, fmt.Errorf("CHAP_I=%q, expected a number up to 255", i)
	}
	text, _ := keys.Get("CHAP_C")
	challenge, err := parseBinary(text)
	if err != nil || len(challenge) == 0 || len(challenge) > 1024 {
		return q, fmt.Errorf("CHAP_C of %d bytes, expected 1 to 1024 in binary encoding", len(challenge))
	}
	return chapChallenge{algorithm, byte(identifier), challenge}, nil
}

// reverse makes our challenge to the target, of the same algorithm.
func (q chapChallenge) reverse() chapChallenge {
	mine := chapChallenge{algorithm: q.algorithm, challenge: make([]byte, 24)}
	rand.Read(mine.challenge)
	mine.identifier = mine.challenge[0]
	return mine
}

// checkTarget verifies CHAP_N and CHAP_R of the target's answer.
func (c *CHAP) checkTarget(mine chapChallenge, keys Keys) error {
	name, _ := keys.Get("CHAP_N")
	if name != c.MutualUser {
		return fmt.Errorf("%w: CHAP_N=%q, expected %q", ErrMutualCHAP, name, c.MutualUser)
	}
	text, _ := keys.Get("CHAP_R")
	got, err := parseBinary(text)
	if err != nil {
		return fmt.Errorf("%w: CHAP_R: %w", ErrMutualCHAP, err)
	}
	want := c.response(mine.algorithm, mine.identifier, c.MutualSecret, mine.challenge)
	if subtle.ConstantTimeCompare(got, want) != 1 {
		return fmt.Errorf("%w: CHAP_R does not match", ErrMutualCHAP)
	}
	return nil
}

// parseBinary decodes a hex (0x) or base64 (0b) constant.
func parseBinary(text string) ([]byte, error) {
	if len(text) < 2 {
		return nil, fmt.Errorf("binary value of %d characters has no 0x or 0b", len(text))
	}
	switch digits := text[2:]; strings.ToLower(text[:2]) {
	case "0x":
		if len(digits)%2 != 0 {
			digits = "0" + digits
		}
		return hex.DecodeString(digits)
	case "0b":
		return base64.StdEncoding.DecodeString(digits)
	}
	return nil, errors.New("binary value does not start with 0x or 0b")
}

func formatBinary(b []byte) string { return "0x" + hex.EncodeToString(b) }
