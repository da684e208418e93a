package initiator

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// loginAnswer answers the request that comes next: same stage, T as asked.
func (f *fake) loginAnswer(spoil func(p *PDU), keys ...Key) Keys {
	request := f.read()
	if request == nil {
		return nil
	}
	p := f.answer(OpLoginResponse, request.BHS[1], request, Keys(keys).Text())
	copy(p.BHS[8:14], request.BHS[8:14])
	if request.BHS[1]&0x83 == 0x83 {
		p.BHS[15] = 1
	}
	f.expCmdSN = request.U32(AtCmdSN)
	f.number(p)
	if spoil != nil {
		spoil(p)
	}
	f.write(p)
	asked, err := ParseKeys(request.Data)
	if err != nil {
		f.t.Error(err)
	}
	return asked
}

// answers to DefaultKeys that a sound target might give.
func soundAnswers() Keys {
	return Keys{
		{"HeaderDigest", "None"}, {"DataDigest", "None"}, {"MaxRecvDataSegmentLength", "65536"},
		{"InitialR2T", "Yes"}, {"ImmediateData", "No"}, {"MaxBurstLength", "16384"}, {"FirstBurstLength", "4096"},
		{"MaxOutstandingR2T", "1"}, {"MaxConnections", "1"}, {"DefaultTime2Wait", "2"}, {"DefaultTime2Retain", "0"},
		{"ErrorRecoveryLevel", "0"}, {"DataPDUInOrder", "Yes"}, {"DataSequenceInOrder", "Yes"},
	}
}

func TestLogin(t *testing.T) {
	var first Keys
	c := connect(t, func(f *fake) {
		first = f.loginAnswer(nil, Key{"TargetPortalGroupTag", "3"}, Key{"AuthMethod", "None"})
		f.loginAnswer(nil, append(soundAnswers(), Key{"TargetAlias", "disk"})...)
	})
	if err := c.Login(Options{Initiator: "iqn.a", Target: "iqn.b"}); err != nil {
		t.Fatal(err)
	}
	if want := (Keys{{"InitiatorName", "iqn.a"}, {"SessionType", "Normal"}, {"TargetName", "iqn.b"}, {"AuthMethod", "None"}}); fmt.Sprint(first) != fmt.Sprint(want) {
		t.Errorf("first request has %v, expected %v", first, want)
	}
	want := defaultParams()
	want.MaxRecvDataSegmentLength, want.TargetMaxRecv = 262144, 65536
	want.ImmediateData, want.MaxBurstLength, want.FirstBurstLength, want.DefaultTime2Retain = false, 16384, 4096, 0
	if c.Params != want {
		t.Errorf("got %+v\nexpected %+v", c.Params, want)
	}
	if c.TSIH != 1 || c.Identity.TargetPortalGroupTag != "3" || c.Identity.TargetAlias != "disk" || c.ExpStatSN != 102 {
		t.Errorf("TSIH %d, %+v, ExpStatSN %d", c.TSIH, c.Identity, c.ExpStatSN)
	}
}

func TestLoginContinuation(t *testing.T) {
	keys := soundAnswers()
	c := connect(t, func(f *fake) {
		f.loginAnswer(nil, Key{"AuthMethod", "None"})
		more := func(p *PDU) { p.BHS[1] = FlagContinue | stageOperational<<2 }
		f.loginAnswer(more, keys[:5]...)
		f.loginAnswer(more, keys[5:]...) // T is not set in the empty requests
		f.loginAnswer(nil)
		f.loginAnswer(nil)
	})
	if err := c.Login(Options{Target: "iqn.b"}); err != nil {
		t.Fatal(err)
	}
	if c.Params.MaxBurstLength != 16384 {
		t.Errorf("MaxBurstLength %d", c.Params.MaxBurstLength)
	}
}

func TestTargetOffersOfItsOwn(t *testing.T) {
	replies := make(chan Keys, 1)
	c := connect(t, func(f *fake) {
		f.loginAnswer(nil, Key{"AuthMethod", "None"})
		f.loginAnswer(func(p *PDU) { p.BHS[1] = stageOperational << 2 }, Key{"MaxBurstLength", "4096"}, Key{"HeaderDigest", "CRC32C,None"})
		replies <- f.loginAnswer(nil)
	})
	if err := c.Login(Options{Target: "iqn.b", Bare: true}); err != nil {
		t.Fatal(err)
	}
	if reply := <-replies; fmt.Sprint(reply) != "[{MaxBurstLength 4096} {HeaderDigest None}]" || c.Params.MaxBurstLength != 4096 || c.Params.HeaderDigest {
		t.Errorf("replied %v, params %+v", reply, c.Params)
	}
}

// TestLoginViolations spoils the operational answer.
func TestLoginViolations(t *testing.T) {
	replace := func(name, value string) Keys { return soundAnswers().with(Key{name, value}) }
	tests := []struct {
		name    string
		section string
		keys    Keys
		spoil   func(p *PDU)
	}{
		{"unanswered offer", "6.2", soundAnswers()[1:], nil},
		{"answered twice", "6.2", append(soundAnswers(), Key{"InitialR2T", "Yes"}), nil},
		{"above the minimum", "6.2", replace("MaxBurstLength", "524288"), nil},
		{"below the maximum", "6.2", replace("DefaultTime2Wait", "1"), nil},
		{"out of range", "6.2", replace("FirstBurstLength", "100"), nil},
		{"no number", "6.2", replace("FirstBurstLength", "many"), nil},
		{"not offered digest", "6.2", replace("HeaderDigest", "CRC32C"), nil},
		{"No to a Yes of OR", "6.2", replace("DataPDUInOrder", "No"), nil},
		{"not understood", "6.2", replace("InitialR2T", "NotUnderstood"), nil},
		{"text without NUL", "6.1", soundAnswers(), func(p *PDU) { p.Data = p.Data[:len(p.Data)-1] }},
		{"ITT", "11.13", soundAnswers(), func(p *PDU) { p.SetU32(AtITT, 77) }},
		{"ISID", "11.13.6", soundAnswers(), func(p *PDU) { p.BHS[9] ^= 1 }},
		{"version", "11.13.2", soundAnswers(), func(p *PDU) { p.BHS[3] = 1 }},
		{"stage", "11.13", soundAnswers(), func(p *PDU) { p.BHS[1] &^= 0x0c }},
		{"T and C", "11.13.2", soundAnswers(), func(p *PDU) { p.BHS[1] |= FlagContinue }},
		{"no TSIH", "11.13.3", soundAnswers(), func(p *PDU) { p.BHS[15] = 0 }},
		{"StatSN", "4.2.2.2", soundAnswers(), func(p *PDU) { p.SetU32(AtStatSN, 5) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, func(f *fake) {
				f.loginAnswer(nil, Key{"AuthMethod", "None"})
				f.loginAnswer(test.spoil, test.keys...)
			})
			wantViolation(t, c.Login(Options{Target: "iqn.b"}), test.section)
		})
	}
}

func TestLoginRefused(t *testing.T) {
	c := connect(t, func(f *fake) {
		f.loginAnswer(func(p *PDU) {
			p.BHS[1], p.BHS[36], p.BHS[37] = 0, 2, 1
			p.SetU32(AtStatSN, 0)
		})
	})
	var failure *LoginFailure
	if err := c.Login(Options{Target: "iqn.b"}); !errors.As(err, &failure) || failure.Class != 2 || failure.Detail != 1 {
		t.Errorf("got %v, expected a refusal with status 0x0201", err)
	}
}

// TestCHAPVectors was computed with Python's hashlib: identifier 0x27, secret
// "sixteen byte key", challenge 00 01 .. 0f.
func TestCHAPVectors(t *testing.T) {
	challenge := make([]byte, 16)
	for i := range challenge {
		challenge[i] = byte(i)
	}
	vectors := map[int]string{
		CHAPMD5:     "2000da5219673adff4145c2a61c82b70",
		CHAPSHA1:    "b45ff90725d5d6a010c4eb7d7a5d4ee335d7e846",
		CHAPSHA256:  "333391ce8c25cfbf6055ff8876a2325e9bb5b224e76b6d9b558172315b424e2c",
		CHAPSHA3256: "345b0c7e53c8669cb35d5e807837ff9156251d49b0a9a49e7080d00ba4684031",
	}
	for algorithm, want := range vectors {
		got := (&CHAP{}).response(algorithm, 0x27, []byte("sixteen byte key"), challenge)
		if hex.EncodeToString(got) != want {
			t.Errorf("algorithm %d: %x, expected %s", algorithm, got, want)
		}
	}
}

// chapTarget is the target's side of mutual CHAP with the given algorithm.
func chapTarget(algorithm int, secret, mutualSecret string, verdict chan<- bool) func(f *fake) {
	return func(f *fake) {
		stay := func(p *PDU) { p.BHS[1] &^= FlagFinal | 3 }
		f.loginAnswer(stay, Key{"AuthMethod", "CHAP"})
		f.loginAnswer(stay, Key{"CHAP_A", fmt.Sprint(algorithm)}, Key{"CHAP_I", "7"}, Key{"CHAP_C", "0b" + "AAECAwQFBgcICQoLDA0ODw=="})
		request := f.read()
		keys, _ := ParseKeys(request.Data)
		name, _ := keys.Get("CHAP_N")
		text, _ := keys.Get("CHAP_R")
		response, _ := parseBinary(text)
		challenge, _ := hex.DecodeString("000102030405060708090a0b0c0d0e0f")
		chap := &CHAP{}
		verdict <- name == "user" && bytes.Equal(response, chap.response(algorithm, 7, []byte(secret), challenge))
		id, _ := keys.Get("CHAP_I")
		text, _ = keys.Get("CHAP_C")
		mine, _ := parseBinary(text)
		n, _ := number(id)
		proof := chap.response(algorithm, byte(n), []byte(mutualSecret), mine)
		p := f.answer(OpLoginResponse, request.BHS[1], request, Keys{{"CHAP_N", "peer"}, {"CHAP_R", formatBinary(proof)}}.Text())
		copy(p.BHS[8:14], request.BHS[8:14])
		f.send(p)
		f.loginAnswer(nil, soundAnswers()...)
	}
}

func TestMutualCHAP(t *testing.T) {
	for _, algorithm := range []int{CHAPMD5, CHAPSHA1, CHAPSHA256, CHAPSHA3256} {
		for _, mutual := range []string{"peer's secret", "something else"} {
			verdict := make(chan bool, 1)
			c := connect(t, func(f *fake) {
				f.expCmdSN = 1
				chapTarget(algorithm, "my secret", mutual, verdict)(f)
			})
			err := c.Login(Options{Target: "iqn.b", CHAP: &CHAP{User: "user", Secret: []byte("my secret"),
				MutualUser: "peer", MutualSecret: []byte("peer's secret")}})
			if !<-verdict {
				t.Errorf("algorithm %d: the target does not accept the response", algorithm)
			}
			if ok := mutual == "peer's secret"; ok != (err == nil) || !ok && !errors.Is(err, ErrMutualCHAP) {
				t.Errorf("algorithm %d, target knows %q: %v", algorithm, mutual, err)
			}
			c.Close()
		}
	}
}

func TestCHAPChallengeRules(t *testing.T) {
	sound := Keys{{"CHAP_A", "5"}, {"CHAP_I", "255"}, {"CHAP_C", "0x0102"}}
	chap := &CHAP{Algorithms: []int{CHAPMD5}}
	if _, err := chap.parseChallenge(sound); err != nil {
		t.Fatal(err)
	}
	for _, k := range []Key{{"CHAP_A", "7"}, {"CHAP_A", ""}, {"CHAP_I", "256"}, {"CHAP_C", "0x"}, {"CHAP_C", "12"}, {"CHAP_C", ""},
		{"CHAP_C", "0x" + strings.Repeat("00", 1025)}} {
		if _, err := chap.parseChallenge(append(Keys{}, sound...).with(k)); err == nil {
			t.Errorf("%s of %d characters was accepted", k.Name, len(k.Value))
		}
	}
}

func TestKeysRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var keys Keys
		for range rapid.IntRange(0, 5).Draw(t, "n") {
			keys = append(keys, Key{rapid.StringMatching(`[A-Za-z]{1,20}`).Draw(t, "name"), rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "value")})
		}
		got, err := ParseKeys(keys.Text())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(keys) {
			t.Fatal(got, err)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	f.Add([]byte("a=b\x00c=d\x00"))
	f.Add([]byte("a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := ParseKeys(text)
		if err != nil {
			return
		}
		again, err := ParseKeys(keys.Text())
		if err != nil || fmt.Sprint(again) != fmt.Sprint(keys) {
			t.Errorf("%q parsed to %v and back to %v: %v", text, keys, again, err)
		}
	})
}
