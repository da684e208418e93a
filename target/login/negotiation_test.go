package login

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lunar/target/pdu"

	"pgregory.net/rapid"
)

// operational is a request of the operational stage.
func operational(transit, more bool) *pdu.LoginRequest {
	req := new(pdu.LoginRequest).Init()
	req.SetCSG(pdu.StageLoginOperationalNegotiation)
	req.SetTransit(transit)
	req.SetContinue(more)
	if transit {
		req.SetNSG(pdu.StageFullFeaturePhase)
	}
	return req
}

const namesText = "InitiatorName=iqn.2026-11.net.example:i\x00TargetName=iqn.2026-11.net.lunar:one\x00"

func open(offer Offer) *Negotiation {
	return New(Config{Offer: offer, Access: &access{auth: Auth{AllowNone: true}}, Rand: &counter{}})
}

func TestLookupIsAskedOnce(t *testing.T) {
	a := &access{auth: Auth{AllowNone: true}}
	n := New(Config{Offer: DefaultOffer(), Access: a})
	if _, err := n.Step(operational(false, false), []byte(namesText)); err != nil {
		t.Fatal(err)
	}
	want := Query{InitiatorName: "iqn.2026-11.net.example:i", TargetName: "iqn.2026-11.net.lunar:one"}
	if a.query != want || n.InitiatorName() != want.InitiatorName || n.TargetName() != want.TargetName || !n.Leading() {
		t.Errorf("%+v", a.query)
	}
	a.query = Query{}
	if _, err := n.Step(operational(true, false), nil); err != nil || a.query != (Query{}) {
		t.Errorf("%+v, %v", a.query, err)
	}
}

// TestLongResponse: a response beyond what the initiator takes goes over
// several PDUs, each asked for by an empty request.
func TestLongResponse(t *testing.T) {
	for _, limit := range []int{512, 8192, 65536} {
		var text, want strings.Builder
		text.WriteString(namesText)
		fmt.Fprintf(&text, "MaxRecvDataSegmentLength=%d\x00", limit)
		for i := range 700 {
			fmt.Fprintf(&text, "X-%d=1\x00", i)
			fmt.Fprintf(&want, "X-%d=NotUnderstood\x00", i)
		}
		n := open(DefaultOffer())
		var got strings.Builder
		rsp, err := n.Step(operational(true, false), []byte(text.String()))
		for ; err == nil && rsp.Continue; rsp, err = n.Step(operational(true, false), nil) {
			if rsp.Transit || rsp.Done || len(rsp.Text) > min(limit, DefaultMaxRecvDataSegmentLength) {
				t.Fatalf("limit %d: %d bytes, transit %v", limit, len(rsp.Text), rsp.Transit)
			}
			got.Write(rsp.Text)
		}
		if err != nil || !rsp.Transit || !rsp.Done {
			t.Fatalf("limit %d: %+v, %v", limit, rsp, err)
		}
		got.Write(rsp.Text)
		if !strings.HasSuffix(got.String(), want.String()) {
			t.Errorf("limit %d: answers are not complete", limit)
		}
	}
}

func TestTextWhileTheResponseGoesOn(t *testing.T) {
	long := namesText + "MaxRecvDataSegmentLength=512\x00"
	for i := range 60 {
		long += fmt.Sprintf("X-%d=1\x00", i)
	}
	for name, req := range map[string]*pdu.LoginRequest{"text": operational(true, false), "C": operational(false, true)} {
		n := open(DefaultOffer())
		if rsp, err := n.Step(operational(true, false), []byte(long)); err != nil || !rsp.Continue {
			t.Fatalf("%+v, %v", rsp, err)
		}
		text := ""
		if name == "text" {
			text = "InitialR2T=No\x00"
		}
		_, err := n.Step(req, []byte(text))
		requireStatus(t, err, pdu.LoginInitiatorError)
	}
}

func TestBounds(t *testing.T) {
	n := open(DefaultOffer())
	_, err := n.Step(operational(false, false), []byte(namesText))
	steps := 1
	for ; err == nil; steps++ {
		_, err = n.Step(operational(false, false), nil)
	}
	requireStatus(t, err, pdu.LoginInitiatorError)
	if steps != MaxSteps+1 {
		t.Errorf("ends after %d requests", steps)
	}

	n = open(DefaultOffer())
	segment := make([]byte, 8192)
	for i := range segment {
		segment[i] = 'x'
	}
	sent := 0
	for err = nil; err == nil; sent += len(segment) {
		_, err = n.Step(operational(false, true), segment)
	}
	requireStatus(t, err, pdu.LoginInitiatorError)
	if sent > MaxBytes+2*len(segment) {
		t.Errorf("takes %d bytes", sent)
	}
}

func TestAfterAnError(t *testing.T) {
	n := open(DefaultOffer())
	_, err := n.Step(operational(true, false), nil)
	requireStatus(t, err, pdu.LoginMissingParameter)
	_, err = n.Step(operational(true, false), []byte(namesText))
	requireStatus(t, err, pdu.LoginInvalidDuringLogin)
}

// TestTruncated: a login text that is cut anywhere is refused, unless it is cut
// between keys and both names are in it.
func TestTruncated(t *testing.T) {
	text := []byte(namesText + "HeaderDigest=CRC32C,None\x00MaxBurstLength=65536\x00")
	for cut := range text {
		rsp, err := open(DefaultOffer()).Step(operational(true, false), text[:cut])
		whole := cut >= len(namesText) && text[cut-1] == 0
		if whole != (err == nil) || rsp.Done != whole {
			t.Errorf("%d of %d bytes: %+v, %v", cut, len(text), rsp, err)
		}
	}
}

// TestContinuedAnywhere: wherever the text is cut into two requests, the result
// is the same.
func TestContinuedAnywhere(t *testing.T) {
	text := []byte(namesText + "HeaderDigest=CRC32C,None\x00MaxBurstLength=65536\x00")
	for cut := range len(text) + 1 {
		n := open(DefaultOffer())
		rsp, err := n.Step(operational(false, true), text[:cut])
		if err != nil || rsp.Transit || len(rsp.Text) > 0 {
			t.Fatalf("%d bytes: %+v, %v", cut, rsp, err)
		}
		rsp, err = n.Step(operational(true, false), text[cut:])
		if err != nil || !rsp.Done || !rsp.Result.Params.HeaderDigest || rsp.Result.Params.MaxBurstLength != 65536 {
			t.Fatalf("%d bytes: %+v, %v", cut, rsp, err)
		}
	}
}

func TestResponseEchoesTheRequest(t *testing.T) {
	req := operational(true, false)
	req.SetISID(pdu.ISID{1, 2, 3, 4, 5, 6})
	req.SetTSIH(7)
	req.BHS().SetITT(8)
	rsp, err := open(DefaultOffer()).Step(req, []byte(namesText))
	if err != nil {
		t.Fatal(err)
	}
	var p pdu.LoginResponse
	rsp.Put(req, &p)
	if p.BHS().Opcode() != pdu.OpLoginResponse || !p.Transit() || p.Continue() || p.CSG() != req.CSG() || p.NSG() != req.NSG() ||
		p.ISID() != req.ISID() || p.TSIH() != 7 || p.BHS().ITT() != 8 || p.BHS().DataSegmentLength() != len(rsp.Text) || p.Status() != pdu.LoginSuccess {
		t.Errorf("% x", p)
	}
	text := Errorf(pdu.LoginOutOfResources, "full").Put(req, &p)
	if len(text) != 0 || p.Status() != pdu.LoginOutOfResources || p.Transit() || p.BHS().ITT() != 8 || p.BHS().DataSegmentLength() != 0 {
		t.Errorf("% x, %q", p, text)
	}
}

// TestTable: every row says all that its kind needs.
func TestTable(t *testing.T) {
	for i := range keys {
		k := &keys[i]
		number, flag := k.number != nil, k.flag != nil
		list, declared := k.values != nil && k.choose != nil, k.declare != nil
		fixed := k.answer != ""
		want := map[kind]bool{
			kindDeclared: declared, kindList: list, kindAnd: flag, kindOr: flag, kindMin: number, kindMax: number,
			kindSecurity: true, kindFixed: fixed, kindTargetOnly: true,
		}[k.kind]
		count := 0
		for _, b := range []bool{number, flag, list, declared, fixed} {
			if b {
				count++
			}
		}
		if !want || count > 1 || k.stages == 0 || number && k.high == 0 || !Known(k.name) || keyByName[k.name] != k {
			t.Errorf("row of %s is incomplete or occurs twice", k.name)
		}
	}
	if Known("Telepathy") || Known("initiatorname") {
		t.Error("an unknown key is known")
	}
}

// TestDefaultsAreLegal: the defaults and the default offer are within the
// ranges of the table.
func TestDefaultsAreLegal(t *testing.T) {
	for name, p := range map[string]Params{"defaults": DefaultParams(), "offer": DefaultOffer().Params} {
		for i := range keys {
			if k := &keys[i]; k.number != nil {
				if v := *k.number(&p); v < k.low || v > k.high {
					t.Errorf("%s: %s=%d", name, k.name, v)
				}
			}
		}
		if p.FirstBurstLength > p.MaxBurstLength {
			t.Errorf("%s: FirstBurstLength above MaxBurstLength", name)
		}
	}
}

// side is what one side offers, in the reference below.
type side struct {
	numbers  map[string]uint32
	booleans map[string]bool
	digest   []string
}

var (
	minima = map[string]uint32{"MaxConnections": 1, "MaxBurstLength": 512, "FirstBurstLength": 512,
		"DefaultTime2Retain": 0, "MaxOutstandingR2T": 1, "ErrorRecoveryLevel": 0}
	maxima = map[string]uint32{"MaxConnections": 65535, "MaxBurstLength": 1<<24 - 1, "FirstBurstLength": 1<<24 - 1,
		"DefaultTime2Retain": 3600, "MaxOutstandingR2T": 65535, "ErrorRecoveryLevel": 2}
	ors  = []string{"InitialR2T", "DataPDUInOrder", "DataSequenceInOrder"}
	ands = []string{"ImmediateData"}
)

func drawSide(t *rapid.T, who string) side {
	s := side{numbers: map[string]uint32{}, booleans: map[string]bool{}}
	for name, low := range minima {
		s.numbers[name] = rapid.Uint32Range(low, maxima[name]).Draw(t, who+name)
	}
	s.numbers["DefaultTime2Wait"] = rapid.Uint32Range(0, 3600).Draw(t, who+"DefaultTime2Wait")
	s.numbers["FirstBurstLength"] = min(s.numbers["FirstBurstLength"], s.numbers["MaxBurstLength"])
	for _, name := range slices.Concat(ors, ands) {
		s.booleans[name] = rapid.Bool().Draw(t, who+name)
	}
	s.digest = rapid.SampledFrom([][]string{{"None"}, {"CRC32C", "None"}, {"None", "CRC32C"}, {"CRC32C"}}).Draw(t, who+"digest")
	return s
}

func (s side) offer() Offer {
	o := DefaultOffer()
	o.MaxConnections, o.MaxBurstLength = s.numbers["MaxConnections"], s.numbers["MaxBurstLength"]
	o.FirstBurstLength, o.DefaultTime2Wait = s.numbers["FirstBurstLength"], s.numbers["DefaultTime2Wait"]
	o.DefaultTime2Retain, o.MaxOutstandingR2T = s.numbers["DefaultTime2Retain"], s.numbers["MaxOutstandingR2T"]
	o.ErrorRecoveryLevel = s.numbers["ErrorRecoveryLevel"]
	o.InitialR2T, o.ImmediateData = s.booleans["InitialR2T"], s.booleans["ImmediateData"]
	o.DataPDUInOrder, o.DataSequenceInOrder = s.booleans["DataPDUInOrder"], s.booleans["DataSequenceInOrder"]
	o.HeaderDigests = s.digest
	return o
}

// pairs are the initiator's offers, in an order that rapid draws.
func (s side) pairs(t *rapid.T) []pdu.Pair {
	var pairs []pdu.Pair
	for name, v := range s.numbers {
		pairs = append(pairs, pdu.Pair{Key: name, Value: strconv.Itoa(int(v))})
	}
	for name, v := range s.booleans {
		pairs = append(pairs, pdu.Pair{Key: name, Value: pdu.FormatBoolean(v)})
	}
	pairs = append(pairs, pdu.Pair{Key: "HeaderDigest", Value: strings.Join(s.digest, ",")})
	slices.SortFunc(pairs, func(a, b pdu.Pair) int { return strings.Compare(a.Key, b.Key) })
	return rapid.Permutation(pairs).Draw(t, "order")
}

// agreed is the reference: the outcome by the words of RFC 7143 13, from
// either side.
func agreed(a, b side) map[string]string {
	want := map[string]string{}
	for name := range minima {
		want[name] = strconv.Itoa(int(min(a.numbers[name], b.numbers[name])))
	}
	want["DefaultTime2Wait"] = strconv.Itoa(int(max(a.numbers["DefaultTime2Wait"], b.numbers["DefaultTime2Wait"])))
	for _, name := range ors {
		want[name] = pdu.FormatBoolean(a.booleans[name] || b.booleans[name])
	}
	for _, name := range ands {
		want[name] = pdu.FormatBoolean(a.booleans[name] && b.booleans[name])
	}
	if want["InitialR2T"] == "Yes" && want["ImmediateData"] == "No" {
		want["FirstBurstLength"] = "Irrelevant"
	}
	if want["ErrorRecoveryLevel"] != "2" {
		want["DefaultTime2Retain"] = "0"
	}
	if want["ErrorRecoveryLevel"] != "0" && want["DataSequenceInOrder"] == "Yes" {
		want["MaxOutstandingR2T"] = "1"
	}
	return want
}

// TestNegotiationAgainstReference: whatever both sides offer and in which
// order the keys come, the answers are those of the reference, which is
// symmetric, and the Params are what the answers say.
func TestNegotiationAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		initiator, target := drawSide(t, "initiator "), drawSide(t, "target ")
		pairs := initiator.pairs(t)
		rsp, err := open(target.offer()).Step(operational(true, false), pdu.AppendText([]byte(namesText), pairs))
		if err != nil {
			t.Fatal(err)
		}
		want := agreed(initiator, target)
		if fmt.Sprint(want) != fmt.Sprint(agreed(target, initiator)) {
			t.Fatal("the reference is not symmetric")
		}
		want["HeaderDigest"] = pdu.ValueReject
		for _, d := range initiator.digest {
			if slices.Contains(target.digest, d) {
				want["HeaderDigest"] = d
				break
			}
		}
		got, err := pdu.ParseText(rsp.Text)
		if err != nil {
			t.Fatal(err)
		}
		got = got[len(got)-len(pairs):]
		for i, p := range got {
			if p.Key != pairs[i].Key || p.Value != want[p.Key] {
				t.Fatalf("answer %s=%s to %s=%s, expected %s", p.Key, p.Value, pairs[i].Key, pairs[i].Value, want[p.Key])
			}
		}
		checkParams(t, rsp.Result.Params, want)
	})
}

func checkParams(t *rapid.T, p Params, want map[string]string) {
	got := map[string]string{
		"InitialR2T":          pdu.FormatBoolean(p.InitialR2T),
		"ImmediateData":       pdu.FormatBoolean(p.ImmediateData),
		"DataPDUInOrder":      pdu.FormatBoolean(p.DataPDUInOrder),
		"DataSequenceInOrder": pdu.FormatBoolean(p.DataSequenceInOrder),
		"MaxConnections":      fmt.Sprint(p.MaxConnections),
		"MaxBurstLength":      fmt.Sprint(p.MaxBurstLength),
		"FirstBurstLength":    fmt.Sprint(p.FirstBurstLength),
		"DefaultTime2Wait":    fmt.Sprint(p.DefaultTime2Wait),
		"DefaultTime2Retain":  fmt.Sprint(p.DefaultTime2Retain),
		"MaxOutstandingR2T":   fmt.Sprint(p.MaxOutstandingR2T),
		"ErrorRecoveryLevel":  fmt.Sprint(p.ErrorRecoveryLevel),
	}
	for key, value := range got {
		if want[key] != pdu.ValueIrrelevant && want[key] != value {
			t.Fatalf("params have %s=%s, the answer was %s", key, value, want[key])
		}
	}
	if p.HeaderDigest != (want["HeaderDigest"] == "CRC32C") || p.FirstBurstLength > p.MaxBurstLength {
		t.Fatalf("%+v", p)
	}
}

// FuzzStep: no sequence of requests makes a negotiation panic, answer beyond
// its bounds, or go on for ever.
func FuzzStep(f *testing.F) {
	f.Add(uint8(0), requests(0x87, namesText+"InitialR2T=No\x00MaxBurstLength=65536\x00"))
	f.Add(uint8(1), requests(0x00, namesText+"AuthMethod=CHAP\x00", 0x00, "CHAP_A=5,7\x00", 0x81, "CHAP_N=alice\x00CHAP_R=0x00\x00CHAP_I=1\x00CHAP_C=0x0011\x00", 0x87, ""))
	f.Add(uint8(2), requests(0x44, "Init", 0x87, "iatorName=a\x00SessionType=Discovery\x00MaxRecvDataSegmentLength=512\x00"))
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		auths := []Auth{{AllowNone: true}, {Incoming: []Credential{alice}, Mutual: &lunar}, {AllowNone: true, Incoming: []Credential{alice}}}
		n := New(Config{Offer: DefaultOffer(), Access: &access{auth: auths[int(which)%len(auths)]}, Rand: &counter{}})
		ended := false
		for steps := 0; len(data) >= 2 && !(ended && steps > MaxSteps); steps++ {
			req := new(pdu.LoginRequest).Init()
			req.BHS()[1] = data[0]
			length := min(int(data[1])*4, len(data)-2)
			rsp, err := n.Step(req, data[2:2+length])
			data = data[2+length:]
			checkStep(t, &rsp, err, ended)
			ended = ended || err != nil || rsp.Done
			if steps >= MaxSteps && !ended {
				t.Fatal("goes on for ever")
			}
		}
	})
}

func checkStep(t *testing.T, rsp *Response, err error, ended bool) {
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Class == 0 || e.Reason == "" {
			t.Fatalf("error %#v", err)
		}
		return
	}
	switch {
	case ended:
		t.Fatal("answers after the end")
	case len(rsp.Text) > DefaultMaxRecvDataSegmentLength, rsp.Transit && rsp.Continue, rsp.Done != (rsp.Result != nil):
		t.Fatalf("response %+v", rsp)
	case rsp.Done && (rsp.NSG != pdu.StageFullFeaturePhase || !rsp.Transit || rsp.Result.InitiatorName == ""):
		t.Fatalf("response %+v of %+v", rsp, rsp.Result)
	}
}

// requests encodes pairs of byte 1 and text for FuzzStep; a text is padded
// with NULs to a multiple of four bytes.
func requests(list ...any) (data []byte) {
	for i := 0; i < len(list); i += 2 {
		text := []byte(list[i+1].(string))
		text = append(text, pdu.ZeroPadding(len(text))...)
		data = append(data, byte(list[i].(int)), byte(len(text)/4))
		data = append(data, text...)
	}
	return data
}
