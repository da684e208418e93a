package login

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/subtle"
	"hash"
	"strconv"
)

// Algorithm is a CHAP algorithm, a value of CHAP_A (RFC 7143 12.1.3; the
// numbers after MD5 are IANA's).
type Algorithm uint8

const (
	// MD5 is the algorithm that RFC 7143 requires of everyone.
	MD5 Algorithm = 5
	// SHA1 is CHAP with SHA-1.
	SHA1 Algorithm = 6
	// SHA256 is CHAP with SHA-256.
	SHA256 Algorithm = 7
	// SHA3256 is CHAP with SHA3-256.
	SHA3256 Algorithm = 8
)

// DefaultAlgorithms is every algorithm, the strongest first. Callers must not
// change it.
var DefaultAlgorithms = []Algorithm{SHA3256, SHA256, SHA1, MD5}

var algorithms = map[Algorithm]struct {
	name string
	size int
	make func() hash.Hash
}{
	MD5:     {"MD5", md5.Size, md5.New},
	SHA1:    {"SHA1", sha1.Size, sha1.New},
	SHA256:  {"SHA-256", sha256.Size, sha256.New},
	SHA3256: {"SHA3-256", 32, func() hash.Hash { return sha3.New256() }},
}

// Size is the length of the algorithm's responses, and of the challenges that
// this package makes for it, in bytes; 0 for an unknown algorithm.
func (a Algorithm) Size() int { return algorithms[a].size }

// String is the algorithm's name.
func (a Algorithm) String() string {
	if row, ok := algorithms[a]; ok {
		return row.name
	}
	return "algorithm " + strconv.Itoa(int(a))
}

// CHAPResponse is the value of CHAP_R: the hash of the identifier, the secret
// and the challenge (RFC 1994 4.1). It is nil for an unknown algorithm.
func CHAPResponse(a Algorithm, id uint8, secret Secret, challenge []byte) []byte {
	row, ok := algorithms[a]
	if !ok {
		return nil
	}
	h := row.make()
	h.Write([]byte{id})
	h.Write([]byte(secret.reveal()))
	h.Write(challenge)
	return h.Sum(nil)
}

// stranger stands in for the credential of an unknown user, so that an
// unknown user and a wrong secret do the same work.
var stranger = Credential{Secret: NewSecret("no such user, no such secret")}

// verifyCHAP returns the credential whose user and secret gave the response.
// Neither its time nor its result tells whether it was the user or the secret
// that is wrong.
func verifyCHAP(c *challenge, credentials []Credential, user string, response []byte) (*Credential, bool) {
	candidate, known := &stranger, 0
	for i := range credentials {
		if subtle.ConstantTimeCompare([]byte(credentials[i].User), []byte(user)) == 1 {
			candidate, known = &credentials[i], 1
		}
	}
	expected := CHAPResponse(c.algorithm, c.id, candidate.Secret, c.bytes)
	ok := known & subtle.ConstantTimeCompare(expected, response)
	return candidate, ok == 1
}

// challenge is the one that the target sent.
type challenge struct {
	algorithm Algorithm
	id        uint8
	bytes     []byte
}
