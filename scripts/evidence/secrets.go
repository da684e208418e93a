package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"lunar/scripts/evidence/daemon"
)

// secrets are all in secretsConfig, as different as secrets are.
var secrets = []string{"kX9vQ2mW7pLs", "kupfer zwirn 93 qy", "p@ss:word#with{yaml}", "Zm9vYmFyYmF6cXV4", "0123456789ABCDEF0f", "trombone-Ünïcode-x"}

// secretsConfig has a secret everywhere where one can be.
const secretsConfig = `portal-groups:
  local:
    tag: 1
    listen: ["127.0.0.1:0"]
discovery:
  auth: hosts
auth-groups:
  hosts:
    chap:
      - user: host1
        secret: "kX9vQ2mW7pLs"
      - {user: host2, secret: "kupfer zwirn 93 qy"}
      - user: host3
        secret: 'p@ss:word#with{yaml}'
    mutual:
      user: lunar
      secret: Zm9vYmFyYmF6cXV4
    algorithms: [sha256, md5]
  others:
    chap: [{user: host4, secret: "0123456789ABCDEF0f"}]
    mutual: {user: lunar, secret: "trombone-Ünïcode-x"}
    initiators: ["iqn.2026-11.example:*"]
volumes:
  default: {type: ram, size: 1MiB}
targets:
  iqn.2026-11.example.lunar:evidence:
    auth-group: hosts
    luns:
      - {lun: 0, volume: default}
`

// damage spoils one line of a configuration, or what is around it.
var damage = []func(lines []string, at int, random *rand.Rand) []string{
	func(l []string, at int, _ *rand.Rand) []string { return append(l[:at:at], l[at+1:]...) },
	func(l []string, at int, _ *rand.Rand) []string { return append(l[:at+1:at+1], l[at:]...) },
	func(l []string, at int, _ *rand.Rand) []string { l[at] = " " + l[at]; return l },
	func(l []string, at int, _ *rand.Rand) []string { l[at] = "\t" + l[at]; return l },
	func(l []string, at int, _ *rand.Rand) []string { l[at] = strings.TrimPrefix(l[at], "  "); return l },
	func(l []string, at int, _ *rand.Rand) []string { l[at] = strings.TrimLeft(l[at], " -"); return l },
	func(l []string, at int, _ *rand.Rand) []string { l[at] = strings.Replace(l[at], ":", "", 1); return l },
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], ": ", ":", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string { l[at] = strings.Replace(l[at], `"`, "", 1); return l },
	func(l []string, at int, _ *rand.Rand) []string { l[at] = strings.Replace(l[at], "'", `"`, 1); return l },
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], "secret", "secrte", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], "secret", "secret-file", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], "secret: ", "secret: [", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], "secret: ", "secret: {a: ", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], "secret: ", "secret: !!int ", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.Replace(l[at], "user: ", "", 1)
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string {
		l[at] = strings.NewReplacer("{", "", "}", "").Replace(l[at])
		return l
	},
	func(l []string, at int, _ *rand.Rand) []string { l[at] += " #"; l[0] = "\ufeff\ufeff" + l[0]; return l },
	func(l []string, at int, _ *rand.Rand) []string { return l[:at+1] },
	func(l []string, at int, random *rand.Rand) []string {
		l[at] = l[at][:random.IntN(len(l[at])+1)]
		return l
	},
	func(l []string, at int, random *rand.Rand) []string {
		const signs = "\"'{}[]:,-#&*!|>%@`\t?\x00\xff"
		i := random.IntN(len(l[at]) + 1)
		l[at] = l[at][:i] + string(signs[random.IntN(len(signs))]) + l[at][i:]
		return l
	},
	func(l []string, at int, random *rand.Rand) []string {
		other := random.IntN(len(l))
		l[at], l[other] = l[other], l[at]
		return l
	},
}

// malformed draws a configuration: half of the time it is spoilt twice.
func malformed(random *rand.Rand) string {
	const first, end = 5, 22 // where the secrets are
	lines := strings.Split(secretsConfig, "\n")
	for range 1 + random.IntN(2) {
		if at := first + random.IntN(end-first); at < len(lines) {
			lines = damage[random.IntN(len(damage))](lines, at, random)
		}
	}
	return strings.Join(lines, "\n")
}

// leaked returns the longest part of a secret that a text has: five characters in a row
// are no accident.
func leaked(text string) string {
	longest := ""
	for _, s := range secrets {
		for from := range s {
			to := from + max(5, len(longest)+1)
			for ; to <= len(s) && strings.Contains(text, s[from:to]); to++ {
				longest = s[from:to]
			}
		}
	}
	return longest
}

// leaks has malformed configurations refused: all by check, some by serve and by apply.
type leaks struct {
	binary         string
	random         *rand.Rand
	refused, lived int // configurations; those that were fine after all do not count
	served         int
	leaky          int // configurations
	wrong          []string
}

func (k *leaks) run(dir string, count int) error {
	s, err := daemon.New(k.binary, dir, secretsConfig)
	if err != nil {
		return err
	}
	if _, err := s.Start(); err != nil {
		return err
	}
	defer s.Kill(syscall.SIGTERM)
	file := filepath.Join(dir, "malformed.yaml")
	for k.refused < count {
		text := malformed(k.random)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		code, said := s.Command("check", file)
		if code == 0 {
			k.lived++
			continue
		}
		k.refused++
		if k.refused%10 == 0 {
			k.served++
			_, applied := s.Lunar("apply", file, "--socket", s.Socket())
			served, err := k.serve(filepath.Join(dir, "other"), text)
			if err != nil {
				return err
			}
			said += served + applied
		}
		if part := leaked(said); part != "" {
			k.leaky++
			k.wrong = append(k.wrong, fmt.Sprintf("%q is in\n%s\nof\n%s", part, said, text))
		}
	}
	if part := leaked(s.Output.String()); part != "" {
		k.leaky++
		k.wrong = append(k.wrong, fmt.Sprintf("%q is in the log of the server that refused them:\n%s", part, s.Output.String()))
	}
	return nil
}

// serve returns what a server says that is started with a configuration. Of what check
// refuses, it may still serve some.
func (k *leaks) serve(dir, text string) (string, error) {
	s, err := daemon.New(k.binary, dir, text)
	if err != nil {
		return "", err
	}
	_, err = s.Start()
	switch {
	case err == nil:
		err = s.Kill(syscall.SIGTERM)
	case errors.Is(err, daemon.ErrEnded):
		err = nil
	}
	return s.Output.String(), err
}
