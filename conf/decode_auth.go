package conf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/internal/trust"
)

// None is the auth-group of those who need no authentication.
const None = "none"

const (
	// maxSecret is how many bytes a text value of login may hold.
	maxSecret = 255

	maxSecretFile = 4096 // bytes that are read of one
)

// maxUser is the longest text value of a login key (RFC 7143 section 6.1).
const maxUser = 255

// chapAlgorithms are the digests of RFC 7143 section 12.1.3 and the later
// IANA assignments, the strongest first.
var chapAlgorithms = []string{"sha3-256", "sha256", "sha1", "md5"}

// DefaultAlgorithms are those of an AuthGroup with users that does not name any.
func DefaultAlgorithms() []string { return slices.Clone(chapAlgorithms) }

// group accepts the name of an auth-group; none is stored as "".
func group(to *string) setter {
	return parsed(to, "the name of an auth-group, or none", func(s string) (string, bool) {
		if s == None {
			return "", true
		}
		return s, objectName.MatchString(s)
	})
}

func (d *decoder) authGroups(n node, c *Config) {
	valid := func(name string) bool { return name != None && objectName.MatchString(name) }
	d.named(n, naming{valid, wantObjectName + ", other than none", aMappingOrNothing}, func(name string, n node) {
		g := AuthGroup{Name: name}
		d.mapping(n, fields{
			"chap":       each(&g.CHAP, user),
			"mutual":     func(d *decoder, n node) { g.Mutual = new(Credential); g.Mutual.decode(d, n, nil) },
			"algorithms": each(&g.Algorithms, func(to *string) setter { return oneOf(to, chapAlgorithms...) }),
			"initiators": each(&g.Match.Initiators, pattern),
			"networks":   each(&g.Match.Networks, network),
		})
		if !d.has(n, "algorithms") {
			g.Algorithms = chapAlgorithms
		}
		c.AuthGroups = append(c.AuthGroups, g)
	})
}

// user reads a credential with the names that are the user's.
func user(to *Credential) setter {
	return func(d *decoder, n node) { to.decode(d, n, fields{"initiators": each(&to.Initiators, pattern)}) }
}

// decode reads {user, secret} or {user, secret-file}, with more keys.
func (to *Credential) decode(d *decoder, n node, keys fields) {
	all := fields{
		"user":        printable(&to.User, maxUser),
		"secret":      inlineSecret(&to.Secret),
		"secret-file": secretFile(&to.Secret),
	}
	maps.Copy(all, keys)
	if !d.mapping(n, all) {
		return
	}
	d.require(n, "user", "the CHAP name")
	inline, file := d.has(n, "secret"), d.has(n, "secret-file")
	if inline == file {
		found := "neither secret nor secret-file"
		if inline {
			found = "both secret and secret-file"
		}
		d.fail(n.path, found, "one of them")
	}
}

// inlineSecret reads a secret from the file itself. Only its length is ever
// told.
func inlineSecret(to *Secret) setter {
	return func(d *decoder, n node) {
		d.secrets = true
		value, ok := n.scalar()
		if !ok {
			d.fail(n.path, "something that is not text", "the CHAP secret in quotes")
			return
		}
		d.secret(n, to, value)
	}
}

// secretFile reads a secret from the first line of a file.
func secretFile(to *Secret) setter {
	return func(d *decoder, n node) {
		path, ok := n.scalar()
		if !ok || !filepath.IsAbs(path) {
			d.fail(n.path, "something else", "the absolute path of a file that holds nothing but the secret")
			return
		}
		data, err := readSecret(path)
		if err != nil {
			d.fail(n.path, "a file that cannot be read: "+withoutPath(err), "a readable file")
			return
		}
		d.warnIfReadable(n.path, path)
		if err := trust.Check(path, nil); err != nil {
			d.warn(n.path, err.Error(), "a secret that nobody else may change; the next release refuses this one")
		}
		d.secret(n, to, strings.TrimRight(string(data), "\r\n"))
	}
}

// readSecret reads what may be a secret, and enough to tell that it is none. It waits
// for no pipe.
func readSecret(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("not a regular file"))
	}
	return io.ReadAll(io.LimitReader(f, maxSecretFile))
}

// withoutPath is why a file could not be opened. Its path may be a secret that
// stands at the wrong key.
func withoutPath(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// secret checks the length and keeps the value.
func (d *decoder) secret(n node, to *Secret, value string) {
	if len(value) < minSecret || len(value) > maxSecret {
		d.fail(n.path, fmt.Sprintf("a secret of %d bytes", len(value)), fmt.Sprintf("%d to %d bytes", minSecret, maxSecret))
		return
	}
	if value == Withheld {
		d.withheld(n)
	}
	*to = NewSecret(value)
}

// withheld tells of a placeholder in place of a secret, with which whoever has seen one
// could log in.
func (d *decoder) withheld(n node) {
	tell := d.fail
	if d.draft {
		tell = d.warn
	}
	tell(n.path, "what lunar config prints in place of a secret", "the secret itself; serve and apply refuse the file without it")
}
