package login

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lunar/target/pdu"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the responses in testdata")

// TestConversations plays every conversation of testdata. A file holds
// conversations between lines of "---"; a conversation starts with directives
//
//	access: none | chap | either | mutual | missing | forbidden | moved
//	algorithms: 7,5
//	offer: small | rdma | iser
//
// and goes on in paragraphs, one for each request:
//
//	> [T] [C] CSG NSG [tsih=N] [cid=N] [version=N]
//	Key=Value, one a line
//	< [T] [C] CSG NSG        the response, written by -rewrite
//	< Key=Value
//	! 0201 ...               or the error
//	= ...                    the result of a login
//
// A line that ends in \ has no NUL. $r(user secret) is the response to the
// target's challenge, $c is that challenge and $x(n) are n times x.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playFile(t, string(want))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s\nrun with -rewrite and read the difference", firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\ngot      %s\nexpected %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(g), len(w))
}

func playFile(t *testing.T, file string) string {
	conversations := strings.Split(file, "---\n")
	for i, c := range conversations {
		conversations[i] = play(t, c)
	}
	return strings.Join(conversations, "---\n")
}

// play runs one conversation and returns it with the actual responses.
func play(t *testing.T, conversation string) string {
	p := &player{t: t, directives: map[string]string{}}
	paragraphs := strings.Split(strings.TrimRight(conversation, "\n"), "\n\n")
	for i, paragraph := range paragraphs {
		lines := slices.DeleteFunc(strings.Split(paragraph, "\n"), isOutput)
		if strings.HasPrefix(lines[0], ">") {
			lines = append(lines, p.request(lines[0], lines[1:])...)
		} else {
			p.direct(lines)
		}
		paragraphs[i] = strings.Join(lines, "\n")
	}
	return strings.Join(paragraphs, "\n\n") + "\n"
}

func isOutput(line string) bool {
	return line != "" && strings.ContainsRune("<!=", rune(line[0]))
}

type player struct {
	t          *testing.T
	directives map[string]string
	n          *Negotiation
}

func (p *player) direct(lines []string) {
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			p.directives[key] = value
		}
	}
}

// request plays one request and returns the lines that answer it.
func (p *player) request(head string, lines []string) []string {
	if p.n == nil {
		p.n = New(p.config())
	}
	req := p.header(head)
	rsp, err := p.n.Step(req, p.text(lines))
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			p.t.Fatalf("error of type %T", err)
		}
		return p.refusal(req, e)
	}
	out := []string{"< " + showHead(&rsp)}
	out = append(out, showText(rsp.Text)...)
	if rsp.Done {
		out = append(out, showResult(rsp.Result)...)
	}
	return out
}

func (p *player) refusal(req *pdu.LoginRequest, e *Error) []string {
	var rsp pdu.LoginResponse
	text := e.Put(req, &rsp)
	return append([]string{fmt.Sprintf("! %04x %s", uint16(rsp.Status()), e.Error())}, showText(text)...)
}

func (p *player) header(head string) *pdu.LoginRequest {
	req := new(pdu.LoginRequest).Init()
	req.BHS().SetImmediate(true)
	req.SetISID(pdu.ISID{0x80, 1, 2, 3, 4, 5})
	req.SetCID(1)
	numbers := 0
	for _, word := range strings.Fields(head)[1:] {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "T":
			req.SetTransit(true)
		case "C":
			req.SetContinue(true)
		case "tsih":
			req.SetTSIH(uint16(n))
		case "cid":
			req.SetCID(uint16(n))
		case "version":
			req.SetVersionMin(uint8(n))
			req.SetVersionMax(uint8(n))
		default:
			stage, err := strconv.Atoi(word)
			if err != nil {
				p.t.Fatalf("%q: %v", head, err)
			}
			if numbers == 0 {
				req.SetCSG(pdu.Stage(stage))
			} else {
				req.SetNSG(pdu.Stage(stage))
			}
			numbers++
		}
	}
	return req
}

var macro = regexp.MustCompile(`\$(r|x)\(([^)]*)\)|\$c`)

func (p *player) text(lines []string) []byte {
	var text []byte
	for _, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = macro.ReplaceAllStringFunc(line, p.expand)
		cut, unfinished := strings.CutSuffix(line, `\`)
		text = append(text, cut...)
		if !unfinished {
			text = append(text, 0)
		}
	}
	return text
}

func (p *player) expand(m string) string {
	parts := macro.FindStringSubmatch(m)
	switch parts[1] {
	case "x":
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat("x", n)
	case "r":
		_, secret, _ := strings.Cut(parts[2], " ")
		return pdu.FormatBinary(respond(p.n.security.sent, NewSecret(secret)))
	}
	return pdu.FormatBinary(p.n.security.sent.bytes)
}

// respond computes CHAP_R for a challenge of the target.
func respond(c *challenge, s Secret) []byte {
	if c == nil {
		return []byte{0}
	}
	return CHAPResponse(c.algorithm, c.id, s, c.bytes)
}

func showHead(rsp *Response) string {
	var words []string
	if rsp.Transit {
		words = append(words, "T")
	}
	if rsp.Continue {
		words = append(words, "C")
	}
	words = append(words, strconv.Itoa(int(rsp.CSG)))
	if rsp.Transit {
		words = append(words, strconv.Itoa(int(rsp.NSG)))
	}
	return strings.Join(words, " ")
}

func showText(text []byte) (lines []string) {
	for line := range bytes.SplitAfterSeq(text, []byte{0}) {
		if s, whole := strings.CutSuffix(string(line), "\x00"); whole {
			lines = append(lines, "< "+s)
		} else if s != "" {
			lines = append(lines, "< "+s+`\`)
		}
	}
	return lines
}

func showResult(r *Result) []string {
	return []string{
		fmt.Sprintf("= %s session, initiator %s (%s), target %s, ISID %s, TSIH %d, CID %d, CHAP user %q",
			r.SessionType, r.InitiatorName, r.InitiatorAlias, r.TargetName, r.ISID, r.TSIH, r.CID, r.Proof.User),
		fmt.Sprintf("= %+v", r.Params.SessionParams),
		fmt.Sprintf("= %+v", r.Params.ConnectionParams),
	}
}

// Credentials of the tests.
var (
	alice = Credential{"alice", NewSecret("alice's long secret")}
	bob   = Credential{"bob", NewSecret("bob's longer secret")}
	lunar = Credential{"lunar", NewSecret("the target's secret")}
)

// access answers every query with one Auth or Error and keeps the query.
type access struct {
	auth  Auth
	err   *Error
	query Query
}

func (a *access) Lookup(q Query) (Auth, *Error) {
	a.query = q
	return a.auth, a.err
}

// counter is a source of bytes 1, 2, 3 and so on.
type counter struct{ last byte }

func (c *counter) Read(p []byte) (int, error) {
	for i := range p {
		c.last++
		p[i] = c.last
	}
	return len(p), nil
}

func (p *player) config() Config {
	c := Config{Offer: DefaultOffer(), Access: p.access(), Rand: &counter{}, PortalGroupTag: 1}
	switch p.directives["offer"] {
	case "small":
		c.Offer.MaxBurstLength = 16 << 10
		c.Offer.FirstBurstLength = 8 << 10
		c.Offer.TargetMaxRecvDataSegmentLength = 4 << 10
		c.Offer.InitialR2T, c.Offer.ImmediateData = true, false
		c.Offer.MaxOutstandingR2T = 1
		c.Offer.HeaderDigests, c.Offer.DataDigests = []string{DigestNone}, []string{DigestCRC32C}
	case "rdma":
		c.Offer.RDMAExtensions = true
		c.Offer.InitiatorMaxRecvDataSegmentLength = 128 << 10
		c.Offer.TargetMaxOutstandingUnexpectedPDUs = 64
		c.Offer.HeaderDigests, c.Offer.DataDigests = []string{DigestNone}, []string{DigestNone}
	case "iser":
		c.Offer = AssistedOffer(DefaultOffer(), 8192)
	}
	return c
}

func (p *player) access() *access {
	a := &access{auth: Auth{TargetAlias: "volume one"}}
	for s := range strings.SplitSeq(p.directives["algorithms"], ",") {
		if n, err := strconv.Atoi(s); err == nil {
			a.auth.Algorithms = append(a.auth.Algorithms, Algorithm(n))
		}
	}
	switch p.directives["access"] {
	case "chap":
		a.auth.Incoming = []Credential{alice, bob}
	case "either":
		a.auth.Incoming, a.auth.AllowNone = []Credential{alice}, true
	case "mutual":
		a.auth.Incoming, a.auth.Mutual = []Credential{alice, bob}, &lunar
	case "missing":
		a.err = Errorf(pdu.LoginNotFound, "no such target")
	case "forbidden":
		a.err = Errorf(pdu.LoginAuthorizationFailure, "initiator has no access")
	case "moved":
		a.err = Errorf(pdu.LoginTargetMovedTemporarily, "target is elsewhere")
		a.err.TargetAddress = "192.0.2.7:3260,1"
	default:
		a.auth.AllowNone = true
	}
	return a
}
