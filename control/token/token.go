package token

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"lunar/control"
	"lunar/internal/durable"
)

// maxFile bounds a file of tokens, in bytes.
const maxFile = 1 << 20

// Entry is who has a token.
type Entry struct {
	Role control.Role
	Name string
	Sum  [sha256.Size]byte // of the token
}

// nameForm is what a name of a token may be.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// New returns a token that cannot be guessed, and its entry.
func New(role control.Role, name string) (text string, e Entry, err error) {
	if !nameForm.MatchString(name) {
		return "", e, fmt.Errorf("found name %q, expected up to 64 letters, digits, '.', '_', '@' and '-'", name)
	}
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", e, err
	}
	text = hex.EncodeToString(random[:])
	return text, Entry{role, name, sha256.Sum256([]byte(text))}, nil
}

// String is the entry's line.
func (e Entry) String() string { return fmt.Sprintf("%s %s %x", e.Role, e.Name, e.Sum) }

// Parse reads the text of a file. Empty lines, and those that begin with #, say nothing.
// An error does not show what was found where a token's sum is expected: it may be a token.
func Parse(text string) (entries []Entry, err error) {
	names := map[string]bool{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e, err := parseLine(line)
		if err == nil && names[e.Name] {
			err = fmt.Errorf("found name %q again, expected another for each token", e.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		names[e.Name] = true
		entries = append(entries, e)
	}
	return entries, nil
}

func parseLine(line string) (e Entry, err error) {
	words := strings.Fields(line)
	if len(words) != 3 {
		return e, fmt.Errorf("found %d words, expected three: role, name and SHA-256 of a token (lunar token create)", len(words))
	}
	sum, err := hex.DecodeString(words[2])
	if err != nil || len(sum) != len(e.Sum) {
		return e, errors.New("found something else, expected the SHA-256 of a token in hexadecimal digits (lunar token create)")
	}
	if !nameForm.MatchString(words[1]) {
		return e, errors.New("found something else as a name, expected up to 64 letters, digits, '.', '_', '@' and '-'")
	}
	e.Name = words[1]
	copy(e.Sum[:], sum)
	e.Role, err = control.ParseRole(words[0])
	return e, err
}

// Find returns who has a token. It takes as long whatever the token is, and whichever
// entry it belongs to.
func Find(entries []Entry, text string) (found Entry, ok bool) {
	sum := sha256.Sum256([]byte(text))
	for i := range entries {
		if subtle.ConstantTimeCompare(sum[:], entries[i].Sum[:]) == 1 {
			found, ok = entries[i], true
		}
	}
	return found, ok
}

// Read reads a file, which others than its owner and group must not read or write.
func Read(path string) ([]Entry, error) {
	_, entries, err := read(path)
	return entries, err
}

func read(path string) (text []byte, entries []Entry, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if mode := info.Mode(); !mode.IsRegular() || mode.Perm()&0o027 != 0 {
		return nil, nil, fmt.Errorf("%s: found %v, expected a file that others cannot read and only its owner can write (chmod g-w,o= %s)", path, mode, path)
	}
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("found more than %d bytes, expected at most that", maxFile)
	}
	if err == nil {
		entries, err = Parse(string(text))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, entries, nil
}

// change replaces a file by one whose entries are other ones, with the same owner, group
// and mode from the moment on that it has the name: the server, which reads it, may be
// another user. A file that is missing has no entries. Comments are lost.
func change(path string, to func([]Entry) ([]Entry, error)) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	lock, err := locked(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	was, entries, err := read(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	if entries, err = to(entries); err != nil {
		return err
	}
	text := "# role, name, SHA-256 of the token; lunar token create makes more\n"
	for _, e := range entries {
		text += e.String() + "\n"
	}
	if missing {
		return durable.Replace(path, []byte(text))
	}
	return durable.Rewrite(path, was, []byte(text))
}

// locked is a file that stays for those who change another one together: it is theirs, one
// after the other, until they close it.
func locked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Add adds an entry, whose name no other has.
func Add(path string, e Entry) error {
	return change(path, func(entries []Entry) ([]Entry, error) {
		if slices.ContainsFunc(entries, func(o Entry) bool { return o.Name == e.Name }) {
			return nil, fmt.Errorf("%s: found a token %s already, expected another name", path, e.Name)
		}
		return append(entries, e), nil
	})
}

// Remove removes the entry of a name.
func Remove(path, name string) error {
	return change(path, func(entries []Entry) ([]Entry, error) {
		left := slices.DeleteFunc(slices.Clone(entries), func(o Entry) bool { return o.Name == name })
		if len(left) == len(entries) {
			return nil, fmt.Errorf("%s: found no token %s", path, name)
		}
		return left, nil
	})
}
