package daemon

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// secretsConfig has a secret in every spelling that YAML has; %N is the secret
// of that number, FILE one of a file.
const secretsConfig = `# secrets in every spelling
log: {level: info}
server: {threads: 1, buffers-per-thread: 8MiB, limits: {sessions: 16}}
discovery: {auth: finders}
portal-groups:
  front: {listen: ["127.0.0.1:0"]}
auth-groups:
  finders:
    chap: [{user: finder, secret: "%0"}]
  hosts:
    chap:
      - user: alice
        secret: "%1"
      - {user: "bob", secret: '%2', }
      - user: carol
        secret: %3
      - secret: |-
          %4
        user: dora
      - user: emil
        secret: >-
          %5
          %6
      - user: fred
        secret-file: FILE
    mutual:
      user: lunar
      secret: "%7"
    algorithms: [sha256, md5]
volumes:
  one:
    type: ram
    size: 1MiB
    serial: "one"
  two: {type: "null", size: 2MiB, block-size: 512}
targets:
  iqn.2026-11.test:t:
    alias: the alias
    auth-group: hosts
    luns:
      0: one
      1: two
qos:
  rules:
    - {name: slow, initiators: ["iqn.*"], limit: 1000}
`

// malformed makes configurations that are broken in many ways.
type malformed struct {
	*rand.Rand
	secrets []string
	text    string
	lines   []string // of one configuration while it is broken
}

const secretLetters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"

func newMalformed(seed uint64, file string) *malformed {
	m := &malformed{Rand: rand.New(rand.NewPCG(seed, 0)), text: strings.Replace(secretsConfig, "FILE", file, 1)}
	for i := range 9 { // the last is the file's
		secret := make([]byte, 14+m.IntN(6))
		for j := range secret {
			secret[j] = secretLetters[m.IntN(len(secretLetters))]
		}
		m.secrets = append(m.secrets, string(secret))
		m.text = strings.ReplaceAll(m.text, fmt.Sprintf("%%%d", i), string(secret))
	}
	return m
}

// mutations each break m.lines in one place.
var mutations = map[string]func(m *malformed){
	"delete a line": func(m *malformed) { i := m.line(); m.lines = append(m.lines[:i], m.lines[i+1:]...) },
	"repeat a line": func(m *malformed) { m.insert(m.line(), m.lines[m.line()]) },
	"swap lines":    func(m *malformed) { i, j := m.line(), m.line(); m.lines[i], m.lines[j] = m.lines[j], m.lines[i] },
	"indent a line": func(m *malformed) { i := m.line(); m.lines[i] = strings.Repeat(" ", 1+m.IntN(4)) + m.lines[i] },
	"outdent a line": func(m *malformed) {
		i := m.line()
		m.lines[i] = m.lines[i][min(len(m.lines[i])-len(strings.TrimLeft(m.lines[i], " ")), 1+m.IntN(6)):]
	},
	"outdent a block": func(m *malformed) { m.shift(-2) },
	"indent a block":  func(m *malformed) { m.shift(2) },
	"indent by a tab": func(m *malformed) { i := m.line(); m.lines[i] = "\t" + strings.TrimLeft(m.lines[i], " ") },
	"join lines":      func(m *malformed) { i := m.line(); m.lines[i] += " "; m.join(i) },
	"split a line":    func(m *malformed) { m.edit(func(s string, at int) string { return s[:at] + "\n" + s[at:] }) },
	"delete characters": func(m *malformed) {
		m.edit(func(s string, at int) string { return s[:at] + s[min(len(s), at+1+m.IntN(3)):] })
	},
	"insert a character": func(m *malformed) {
		m.edit(func(s string, at int) string {
			return s[:at] + m.one(`"`, `'`, ":", ": ", "[", "]", "{", "}", ",", "\t", "#", " #", "&a ", "*a", "!!str ", "|", ">", "- ", "<<: ", "\r", "\\", "?", "@", "%", "\x00", "\u00e4", "---\n") + s[at:]
		})
	},
	"drop a quote or bracket": func(m *malformed) {
		i := m.line()
		if at := strings.IndexAny(m.lines[i], `"'[]{}:,`); at >= 0 {
			m.lines[i] = m.lines[i][:at] + m.lines[i][at+1:]
		}
	},
	"misspell a key": func(m *malformed) {
		m.replace(m.one("secret", "chap", "auth-groups", "user", "mutual", "volumes", "type", "size", "secret-file"), m.one("secrt", "chop", "password", "x", "Secret", "key", "pass word"))
	},
	"another key": func(m *malformed) {
		m.replace(m.one("secret:", "user:", "chap:", "mutual:"), m.one("secret-file:", "algorithms:", "alias:", "initiators:", "networks:", "auth-group:", "secret:"))
	},
	"another type": func(m *malformed) {
		m.replace(m.one("ram", "1MiB", "512", "info", "127.0.0.1:0", "1000", "finder", "front"), m.one("[1, 2]", "{a: b}", "no", "-1", "1e9", "", "|\n        x", "*x"))
	},
	"a secret's value": func(m *malformed) {
		m.replace(m.one("ram", "1MiB", "512", "info", "127.0.0.1:0", "1000", "hosts", "{auth: finders}", "iqn.*", "sha256", "8MiB"), m.secret())
	},
	"a secret's line": func(m *malformed) {
		m.insert(m.line(), strings.Repeat(" ", 2*m.IntN(6))+m.one("", "- ", "x: ", "secret: ", "&", "*", "'", `"`, "? ")+m.secret()+m.one("", ": 1", ": [", "'", `"`, ","))
	},
	"cut off": func(m *malformed) {
		i := m.line()
		m.lines = m.lines[:i+1]
		m.edit(func(s string, at int) string { return s[:at] })
	},
	"a mark":        func(m *malformed) { m.lines[0] = "\xef\xbb\xbf" + m.lines[0] },
	"a mark inside": func(m *malformed) { i := m.line(); m.lines[i] = "\xef\xbb\xbf" + m.lines[i] },
}

// next returns a configuration that is broken in one to three ways, and these.
func (m *malformed) next(names []string) (text string, how []string) {
	m.lines = strings.Split(m.text, "\n")
	for range 1 + m.IntN(3) {
		name := names[m.IntN(len(names))]
		if how = append(how, name); len(m.lines) > 1 {
			mutations[name](m)
		}
	}
	return strings.Join(m.lines, "\n"), how
}

func (m *malformed) line() int                  { return m.IntN(len(m.lines)) }
func (m *malformed) one(words ...string) string { return words[m.IntN(len(words))] }
func (m *malformed) secret() string             { return m.one(m.secrets...) }
func (m *malformed) insert(at int, line string) {
	m.lines = append(m.lines[:at], append([]string{line}, m.lines[at:]...)...)
}

// edit changes a line at a place.
func (m *malformed) edit(change func(s string, at int) string) {
	i := m.line()
	m.lines[i] = change(m.lines[i], m.IntN(len(m.lines[i])+1))
}

func (m *malformed) join(i int) {
	if i+1 < len(m.lines) {
		m.lines[i] += strings.TrimLeft(m.lines[i+1], " ")
		m.lines = append(m.lines[:i+1], m.lines[i+2:]...)
	}
}

// shift moves a few lines right or left.
func (m *malformed) shift(by int) {
	first := m.line()
	for i := first; i < min(first+1+m.IntN(8), len(m.lines)); i++ {
		if by > 0 {
			m.lines[i] = strings.Repeat(" ", by) + m.lines[i]
		} else {
			m.lines[i] = strings.TrimPrefix(m.lines[i], strings.Repeat(" ", -by))
		}
	}
}

// replace puts a word in place of one of those that are equal to another.
func (m *malformed) replace(old, by string) {
	var at []int
	for i, line := range m.lines {
		if strings.Contains(line, old) {
			at = append(at, i)
		}
	}
	if len(at) > 0 {
		i := at[m.IntN(len(at))]
		m.lines[i] = strings.Replace(m.lines[i], old, by, 1)
	}
}
