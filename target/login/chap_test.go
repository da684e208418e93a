package login

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"lunar/target/pdu"

	"pgregory.net/rapid"
)

// TestCHAPResponse checks values that another implementation of the hashes
// computed.
func TestCHAPResponse(t *testing.T) {
	challenge, _ := hex.DecodeString("000102030405060708090a0b0c0d0e0f")
	for a, want := range map[Algorithm]string{
		MD5:     "7efffe0f324cdaeb9442b9216e36d904",
		SHA1:    "f960d1db12d99fa70d7120fdb7368a2226f7ca0b",
		SHA256:  "27750b3c27f8f918a878a6e96ac6ba3778f21ad55a7cd93fbd1424ab63cbe87b",
		SHA3256: "983c8a268420313515d40186ac94b8c2146173a611c48d1fa21af77a5fe8f0cd",
	} {
		got := CHAPResponse(a, 0x2a, NewSecret("correct horse battery"), challenge)
		if hex.EncodeToString(got) != want || len(got) != a.Size() {
			t.Errorf("%s: %x, expected %s", a, got, want)
		}
	}
	if got := CHAPResponse(9, 1, NewSecret("secret"), challenge); got != nil {
		t.Errorf("unknown algorithm: %x", got)
	}
}

func TestAlgorithmNames(t *testing.T) {
	named := map[string]bool{}
	for _, a := range DefaultAlgorithms {
		if name := a.String(); named[name] || strings.HasPrefix(name, "algorithm") {
			t.Errorf("%d: found the name %s", int(a), name)
		} else {
			named[name] = true
		}
	}
	if got := Algorithm(9).String(); got != "algorithm 9" {
		t.Error(got)
	}
}

// exchange is the initiator's side of a CHAP login.
type exchange struct {
	t          testing.TB
	n          *Negotiation
	user       string
	secret     Secret
	offered    string // CHAP_A
	binary     func([]byte) string
	challenge  []byte // to the target, nil for one-way CHAP
	identifier uint8
	chosen     Algorithm
	challenged []byte // by the target
	identified uint8
	answer     map[string]string // the target's last keys
}

// run plays the login up to the operational stage.
func (e *exchange) run() error {
	if err := e.hello(); err != nil {
		return err
	}
	response := CHAPResponse(e.chosen, e.identified, e.secret, e.challenged)
	keys := []string{"CHAP_N=" + e.user, "CHAP_R=" + e.binary(response)}
	if e.challenge != nil {
		keys = append(keys, fmt.Sprintf("CHAP_I=%d", e.identifier), "CHAP_C="+e.binary(e.challenge))
	}
	return e.send(true, keys...)
}

// hello gets the target's challenge.
func (e *exchange) hello() (err error) {
	if err := e.send(false, "InitiatorName=i", "TargetName=t", "AuthMethod=CHAP"); err != nil {
		return err
	}
	if err := e.send(false, "CHAP_A="+e.offered); err != nil {
		return err
	}
	number, _ := strconv.Atoi(e.answer["CHAP_A"])
	id, _ := strconv.Atoi(e.answer["CHAP_I"])
	e.chosen, e.identified = Algorithm(number), uint8(id)
	if e.challenged, err = pdu.ParseBinary(e.answer["CHAP_C"], 1024); err != nil {
		e.t.Fatal(err)
	}
	if len(e.challenged) != e.chosen.Size() {
		e.t.Fatalf("challenge of %d bytes for %s", len(e.challenged), e.chosen)
	}
	return nil
}

func (e *exchange) send(transit bool, keys ...string) error {
	req := new(pdu.LoginRequest).Init()
	req.SetTransit(transit)
	req.SetNSG(pdu.StageLoginOperationalNegotiation)
	rsp, err := e.n.Step(req, []byte(strings.Join(keys, "\x00")+"\x00"))
	if err != nil {
		return err
	}
	if rsp.Transit != transit {
		e.t.Fatalf("transit is %v, expected %v", rsp.Transit, transit)
	}
	pairs, err := pdu.ParseText(rsp.Text)
	if err != nil {
		e.t.Fatal(err)
	}
	e.answer = map[string]string{}
	for _, p := range pairs {
		e.answer[p.Key] = p.Value
	}
	return nil
}

// TestCHAP: whatever the algorithms, their order and the encoding, the right
// secret gets in, any other does not, and the target's proof is right.
func TestCHAP(t *testing.T) {
	encodings := []func([]byte) string{
		pdu.FormatBinary,
		func(b []byte) string { return "0X" + strings.ToUpper(hex.EncodeToString(b)) },
		func(b []byte) string { return "0b" + base64Of(b) },
	}
	rapid.Check(t, func(rt *rapid.T) {
		allowed := rapid.Permutation(DefaultAlgorithms).Draw(rt, "allowed")[:rapid.IntRange(1, 4).Draw(rt, "number")]
		offered := rapid.Permutation(DefaultAlgorithms).Draw(rt, "offered")
		secret := NewSecret(rapid.StringMatching(`[ -~]{12,40}`).Draw(rt, "secret"))
		right := rapid.Bool().Draw(rt, "right")
		mutual := rapid.Bool().Draw(rt, "mutual")
		auth := Auth{Incoming: []Credential{bob, {"alice", secret}}, Mutual: &lunar, Algorithms: allowed}
		e := &exchange{
			t: t, user: "alice", secret: secret, offered: "9," + joined(offered),
			binary: rapid.SampledFrom(encodings).Draw(rt, "encoding"),
			n:      New(Config{Offer: DefaultOffer(), Access: &access{auth: auth}, Rand: &counter{}}),
		}
		if mutual {
			e.challenge = rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(rt, "challenge")
			e.identifier = rapid.Byte().Draw(rt, "identifier")
		}
		if !right {
			e.secret = NewSecret(secret.reveal() + "!")
		}
		err := e.run()
		if !right {
			requireStatus(t, err, pdu.LoginAuthenticationFailure)
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := allowed[0]
		if want == MD5 && len(allowed) > 1 {
			want = allowed[1]
		}
		if e.chosen != want {
			t.Fatalf("%s, expected the target's preference %s, MD5 last", e.chosen, want)
		}
		if mutual {
			checkProof(t, e)
		}
	})
}

func checkProof(t *testing.T, e *exchange) {
	proof, err := pdu.ParseBinary(e.answer["CHAP_R"], 1024)
	want := CHAPResponse(e.chosen, e.identifier, lunar.Secret, e.challenge)
	if err != nil || !bytes.Equal(proof, want) || e.answer["CHAP_N"] != lunar.User {
		t.Fatalf("proof %x of %q, expected %x, %v", proof, e.answer["CHAP_N"], want, err)
	}
}

func base64Of(b []byte) string {
	v, _ := json.Marshal(b)
	return strings.Trim(string(v), `"`)
}

func joined(list []Algorithm) string {
	var words []string
	for _, a := range list {
		words = append(words, strconv.Itoa(int(a)))
	}
	return strings.Join(words, ",")
}

func requireStatus(t *testing.T, err error, want pdu.LoginStatus) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Status() != want {
		t.Fatalf("%v, expected status %s", err, want)
	}
}

func TestSecretsThatAreRefused(t *testing.T) {
	short := Credential{"alice", NewSecret("short")}
	same := Credential{"lunar", alice.Secret}
	for name, c := range map[string]struct {
		auth  Auth
		allow bool
		fails bool
	}{
		"short secret":               {Auth{Incoming: []Credential{short}}, false, true},
		"short secret, allowed":      {Auth{Incoming: []Credential{short}}, true, false},
		"short mutual secret":        {Auth{Incoming: []Credential{alice}, Mutual: &Credential{"lunar", NewSecret("short")}}, false, true},
		"one secret, both ways":      {Auth{Incoming: []Credential{alice}, Mutual: &same}, false, true},
		"different secrets":          {Auth{Incoming: []Credential{alice}, Mutual: &lunar}, false, false},
		"mutual user without a name": {Auth{Incoming: []Credential{alice}, Mutual: &Credential{"", lunar.Secret}}, false, true},
	} {
		e := &exchange{
			t: t, user: "alice", secret: c.auth.Incoming[0].Secret, offered: "5", binary: pdu.FormatBinary,
			n: New(Config{Access: &access{auth: c.auth}, Rand: &counter{}, AllowShortSecrets: c.allow}),
		}
		if c.auth.Mutual != nil {
			e.challenge = []byte("initiator's challenge")
		}
		err := e.run()
		if c.fails {
			requireStatus(t, err, pdu.LoginAuthenticationFailure)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnknownUserIsLikeWrongSecret: to the initiator; the log tells them apart.
func TestUnknownUserIsLikeWrongSecret(t *testing.T) {
	var answers []pdu.BHS
	reasons := map[string]bool{}
	for _, user := range []string{"alice", "nobody"} {
		e := &exchange{
			t: t, user: user, secret: NewSecret("wrong, wrong, wrong"), offered: "7", binary: pdu.FormatBinary,
			n: New(Config{Access: &access{auth: Auth{Incoming: []Credential{alice}}}, Rand: &counter{}}),
		}
		err := e.run()
		requireStatus(t, err, pdu.LoginAuthenticationFailure)
		var refused *Error
		errors.As(err, &refused)
		var answer pdu.BHS
		if data := refused.Put((*pdu.LoginRequest)(&pdu.BHS{}), (*pdu.LoginResponse)(&answer)); len(data) != 0 {
			t.Errorf("%s: found %q besides the header", user, data)
		}
		answers, reasons[err.Error()] = append(answers, answer), true
	}
	if answers[0] != answers[1] {
		t.Errorf("found %x and %x, expected the same to the byte", answers[0], answers[1])
	}
	if len(reasons) != 2 {
		t.Errorf("found %v, expected a reason of its own for each", reasons)
	}
}

// TestStrangerGetsNothing: nobody gets in with the secret that stands in for
// an unknown user's.
func TestStrangerGetsNothing(t *testing.T) {
	for _, user := range []string{"", "nobody"} {
		e := &exchange{
			t: t, user: user, secret: stranger.Secret, offered: "5", binary: pdu.FormatBinary,
			n: New(Config{Access: &access{auth: Auth{Incoming: []Credential{alice}}}, Rand: &counter{}}),
		}
		requireStatus(t, e.run(), pdu.LoginAuthenticationFailure)
	}
}

func TestNoRandomness(t *testing.T) {
	e := &exchange{
		t: t, user: "alice", offered: "5", binary: pdu.FormatBinary,
		n: New(Config{Access: &access{auth: Auth{Incoming: []Credential{alice}}}, Rand: strings.NewReader("short")}),
	}
	requireStatus(t, e.run(), pdu.LoginTargetError)
}

// TestSecretsDoNotPrint: no way of formatting, logging or marshalling shows a
// secret.
func TestSecretsDoNotPrint(t *testing.T) {
	const word = "hush-hush-hush"
	s := NewSecret(word)
	auth := Auth{Incoming: []Credential{{"alice", s}}, Mutual: &Credential{"lunar", s}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		for _, v := range []any{s, &s, auth, &auth, *auth.Mutual, map[Secret]Secret{s: s}, []Secret{s}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	for _, v := range []any{s, auth, map[Secret]Secret{s: s}} {
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(encoded)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("login", "secret", s, "auth", auth, "credential", auth.Mutual)
	}
	if !s.Equal(NewSecret(word)) || s.Equal(NewSecret("other")) || s.Len() != len(word) || (Secret{}).Len() != 0 {
		t.Error("the secret is not what it was made of")
	}
	fmt.Fprintln(&out, s, (&Credential{"alice", NewSecret("hush-hush")}).Validate(MinSecretLength))
	if _, err := io.WriteString(&out, fmt.Errorf("%w: %s", errors.New("x"), s).Error()); err != nil {
		t.Fatal(err)
	}
	for _, shape := range []string{"hush", hex.EncodeToString([]byte("hush")), "687573682D", base64Of([]byte("hush-hus"))} {
		if strings.Contains(out.String(), shape) {
			t.Errorf("%q is in the output:\n%s", shape, out.String())
		}
	}
	if !strings.Contains(out.String(), "***") {
		t.Error("no *** in the output")
	}
}

// TestReflections: whoever has no secret of a user, but one of another, gets in by no
// answer of the target to its own challenge, on whatever connection. The configuration
// is the worst: the target proves itself by the secret of a user of another group.
func TestReflections(t *testing.T) {
	shared := NewSecret("one secret, both ways")
	victim := Auth{Group: "victims", Incoming: []Credential{{"victim", shared}}}
	own := Auth{Group: "others", Incoming: []Credential{alice}, Mutual: &Credential{"lunar", shared}}
	for name, reflect := range map[string]func(*exchange) []byte{
		"the challenge":            func(c *exchange) []byte { return c.challenged },
		"a challenge behind bytes": func(c *exchange) []byte { return append([]byte("x"), c.challenged...) },
	} {
		t.Run(name, func(t *testing.T) {
			all := &Exchanges{}
			open := func(auth Auth) *exchange {
				n := New(Config{Offer: DefaultOffer(), Access: &access{auth: auth}, Rand: &counter{}, Exchanges: all})
				return &exchange{t: t, n: n, offered: "7", binary: pdu.FormatBinary}
			}
			first, second := open(victim), open(own)
			first.hello()
			second.user, second.secret, second.challenge = "alice", alice.Secret, reflect(first)
			second.identifier = first.identified
			err := second.run()
			if name == "the challenge" {
				requireStatus(t, err, pdu.LoginAuthenticationFailure)
			}
			if err == nil { // the target has answered something else than its own challenge
				response, _ := pdu.ParseBinary(second.answer["CHAP_R"], 1024)
				err = first.send(true, "CHAP_N=victim", "CHAP_R="+pdu.FormatBinary(response))
			}
			requireStatus(t, err, pdu.LoginAuthenticationFailure)
		})
	}
}

// TestResponseOfTheTarget: a response that the target has given is nobody's proof, even
// if it is right: a secret may be the beginning of another one.
func TestResponseOfTheTarget(t *testing.T) {
	long := NewSecret("a secret of length")
	short := NewSecret("a secret of lengt")
	all := &Exchanges{}
	first := &exchange{t: t, offered: "7", binary: pdu.FormatBinary, n: New(Config{Offer: DefaultOffer(), Exchanges: all, Rand: &counter{},
		Access: &access{auth: Auth{Incoming: []Credential{{"victim", long}}}}})}
	first.hello()
	second := &exchange{t: t, offered: "7", binary: pdu.FormatBinary, user: "alice", secret: alice.Secret, identifier: first.identified,
		challenge: append([]byte("h"), first.challenged...), n: New(Config{Offer: DefaultOffer(), Exchanges: all, Rand: &counter{last: 100},
			Access: &access{auth: Auth{Incoming: []Credential{alice}, Mutual: &Credential{"lunar", short}}}})}
	if err := second.run(); err != nil {
		t.Fatal(err)
	}
	err := first.send(true, "CHAP_N=victim", "CHAP_R="+second.answer["CHAP_R"])
	requireStatus(t, err, pdu.LoginAuthenticationFailure)
	second.n.End()
	first.n.End()
	if len(all.pending)+len(all.answers) > 0 {
		t.Errorf("%d challenges and %d responses are kept when all logins are over", len(all.pending), len(all.answers))
	}
}

// TestWeakerHash: who has proven a hash proves no weaker one any more, until the
// administrator takes the stronger one away or the secret is another.
func TestWeakerHash(t *testing.T) {
	all := &Exchanges{}
	try := func(secret Secret, offered string, allowed ...Algorithm) error {
		e := &exchange{t: t, user: "alice", secret: secret, offered: offered, binary: pdu.FormatBinary, n: New(Config{
			Offer: DefaultOffer(), Exchanges: all, Rand: &counter{},
			Access: &access{auth: Auth{Group: "g", Incoming: []Credential{{"alice", secret}}, Algorithms: allowed}}})}
		return e.run()
	}
	good := func(when string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	another := NewSecret("another secret of hers")
	good("MD5 at first", try(alice.Secret, "5"))
	good("SHA-256", try(alice.Secret, "7,5"))
	weaker := try(alice.Secret, "5")
	requireStatus(t, weaker, pdu.LoginAuthenticationFailure)
	if text := weaker.Error(); !strings.Contains(text, `CHAP user "alice" proves itself by MD5, and did by SHA-256 before`) || !strings.Contains(text, "algorithms of auth-group g without SHA-256") {
		t.Errorf("found %q, expected the user, both hashes and what helps", text)
	}
	requireStatus(t, try(alice.Secret, "6,5"), pdu.LoginAuthenticationFailure)
	good("SHA3-256, which is as strong", try(alice.Secret, "8"))
	good("SHA-256 again", try(alice.Secret, "7"))
	good("where nothing stronger is allowed", try(alice.Secret, "5", MD5))
	good("and from then on", try(alice.Secret, "5"))
	good("SHA1", try(alice.Secret, "6"))
	good("MD5 with another secret", try(another, "5"))
}
