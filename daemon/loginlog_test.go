package daemon

import (
	"strings"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

const loginlogConfig = `
log: {level: debug}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
auth-groups:
  hosts: {chap: [{user: host, secret: "never to be seen"}], mutual: {user: lunar, secret: "nor is this one"}}
  mine: {initiators: ["iqn.2026-11.test:mine"]}
volumes: {v: {type: ram, size: 1MiB}}
targets:
  iqn.2026-11.test:t: {auth-group: hosts, luns: {0: v}}
  iqn.2026-11.test:u: {auth-group: mine, luns: {0: v}}
`

// TestLoginLog: a refused login is logged with its user and its reason, and at
// debug level with the keys of both sides, and never with a secret or a proof.
func TestLoginLog(t *testing.T) {
	s := serveLive(t, loginlogConfig)
	chap := func(user, secret, mutual string) *initiator.CHAP {
		return &initiator.CHAP{User: user, Secret: []byte(secret), MutualUser: "lunar", MutualSecret: []byte(mutual)}
	}
	const right, wrong, mutual = "never to be seen", "another one of these", "nor is this one"
	for _, test := range []struct {
		target string
		chap   *initiator.CHAP
		want   string
	}{
		{"iqn.2026-11.test:t", chap("host", wrong, mutual), `wrong secret of CHAP user \"host\"`},
		{"iqn.2026-11.test:t", chap("guest", right, mutual), `unknown CHAP user \"guest\"`},
		{"iqn.2026-11.test:t", chap("host", right, wrong), `user=host reason="the initiator went away after the target's answer`},
		{"iqn.2026-11.test:t", nil, "AuthMethod=None has no method that is allowed here"},
		{"iqn.2026-11.test:u", nil, "no access rule of iqn.2026-11.test:u matches"},
		{"iqn.2026-11.test:w", nil, `no target \"iqn.2026-11.test:w\"`},
	} {
		news := s.log.Since()
		c, err := initiator.Dial(t.Context(), s.portal, initiator.Options{Target: test.target, CHAP: test.chap})
		if err == nil {
			c.Close()
			t.Fatalf("%s: logged in, expected %s", test.target, test.want)
		}
		eventually.Says(t, news, test.want)
	}
	dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("host", right, mutual)})
	log := s.log.String()
	s.has(log, "AuthMethod=CHAP", "CHAP_N=host", "CHAP_R=***", "CHAP_C=***", "MaxBurstLength=", `msg="login response"`)
	for _, secret := range []string{right, wrong, mutual, "CHAP_R=0", "CHAP_C=0"} {
		if strings.Contains(log, secret) {
			t.Errorf("%q is in\n%s", secret, log)
		}
	}
}
