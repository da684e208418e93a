package pdu

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseText(t *testing.T) {
	key63 := "K" + strings.Repeat("k", 62)
	value255 := strings.Repeat("v", 255)
	hex1024 := "0x" + strings.Repeat("ab", 1024)
	for _, c := range []struct {
		name, text string
		want       []Pair // nil: refused
	}{
		{"one", "A=b\x00", []Pair{{"A", "b"}}},
		{"two", "A=b\x00C=d\x00", []Pair{{"A", "b"}, {"C", "d"}}},
		{"empty value", "A=\x00", []Pair{{"A", ""}}},
		{"= in the value", "A=b=c\x00", []Pair{{"A", "b=c"}}},
		{"extra NULs", "\x00A=b\x00\x00\x00C=d\x00\x00", []Pair{{"A", "b"}, {"C", "d"}}},
		{"repeated key", "TargetName=a\x00TargetName=b\x00", []Pair{{"TargetName", "a"}, {"TargetName", "b"}}},
		{"longest key", key63 + "=v\x00", []Pair{{key63, "v"}}},
		{"longest value", "A=" + value255 + "\x00", []Pair{{"A", value255}}},
		{"list of long values", "A=" + value255 + "," + value255 + "\x00", []Pair{{"A", value255 + "," + value255}}},
		{"large binary", "A=" + hex1024 + "\x00", []Pair{{"A", hex1024}}},
		{"vendor key", "X-com.example.a=1\x00X#y=2\x00", []Pair{{"X-com.example.a", "1"}, {"X#y", "2"}}},
		{"lower-case i", "iSCSIProtocolLevel=1\x00", []Pair{{"iSCSIProtocolLevel", "1"}}},
		{"UTF-8", "InitiatorAlias=Grüße, 世界\x00", []Pair{{"InitiatorAlias", "Grüße, 世界"}}},
		{"no NUL", "A=b", nil},
		{"no =", "Ab\x00", nil},
		{"no key", "=b\x00", nil},
		{"digit first", "1a=b\x00", nil},
		{"space in the key", "A b=c\x00", nil},
		{"key too long", key63 + "k=v\x00", nil},
		{"value too long", "A=" + value255 + "v\x00", nil},
		{"element too long", "A=b," + value255 + "v\x00", nil},
		{"binary too long", "A=" + hex1024 + "a\x00", nil},
		{"control character", "A=b\nc\x00", nil},
		{"DEL", "A=\x7f\x00", nil},
		{"not UTF-8", "A=\xff\x00", nil},
	} {
		got, err := ParseText([]byte(c.text))
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) || err != nil && !errors.Is(err, ErrText) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestParseTextOfNothing(t *testing.T) {
	if got, err := ParseText(nil); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestParseTextTruncated(t *testing.T) {
	text := AppendText(nil, []Pair{{"InitiatorName", "iqn.2026-01.x:a"}, {"AuthMethod", "CHAP,None"}})
	for n := range text {
		_, err := ParseText(text[:n])
		ends := n == 0 || text[n-1] == 0
		if (err == nil) != ends {
			t.Errorf("%d of %d bytes: %v", n, len(text), err)
		}
	}
}

func TestErrorsDoNotQuoteValues(t *testing.T) {
	for _, text := range []string{"CHAP_R=hush\x01\x00", "CHAP_R=hush\xff\x00", "CHAP_R=" + strings.Repeat("hush", 99) + "\x00", "hush\x00", "CHAP_R=hush"} {
		if _, err := ParseText([]byte(text)); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v", err)
		}
	}
	for _, value := range []string{"hush", "0xhush", "0b%hush"} {
		if _, err := ParseBinary(value, 16); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%v", err)
		}
	}
}

func TestDuplicateKey(t *testing.T) {
	if key, found := DuplicateKey([]Pair{{"A", "1"}, {"B", "1"}, {"B", "2"}, {"A", "2"}}); !found || key != "B" {
		t.Errorf("%q, %v", key, found)
	}
	if key, found := DuplicateKey([]Pair{{"A", "1"}, {"B", "1"}}); found {
		t.Errorf("%q", key)
	}
}

func TestTextRoundTrip(t *testing.T) {
	pair := rapid.Custom(func(t *rapid.T) Pair {
		return Pair{
			rapid.StringMatching(`[A-Z][a-zA-Z0-9.+@_-]{0,62}`).Draw(t, "key"),
			rapid.StringMatching(`[ -~äß世]{0,80}`).Draw(t, "value"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.SliceOfN(pair, 1, 8).Draw(t, "pairs")
		got, err := ParseText(AppendText(nil, pairs))
		if err != nil || !slices.Equal(got, pairs) {
			t.Fatalf("%v, %v", got, err)
		}
	})
}

func TestParseNumber(t *testing.T) {
	for s, want := range map[string]uint64{
		"0": 0, "1": 1, "8192": 8192, "0x0": 0, "0x2000": 8192, "0XfF": 255, "0x00ff": 255,
		"18446744073709551615": 1<<64 - 1, "0xffffffffffffffff": 1<<64 - 1,
	} {
		if got, err := ParseNumber(s); got != want || err != nil {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "-1", "+1", "01", "1_000", "1.5", " 1", "0x", "0x-1", "0xg", "x1", "18446744073709551616", "Yes"} {
		if got, err := ParseNumber(s); !errors.Is(err, ErrValue) {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
}

func TestParseBoolean(t *testing.T) {
	for _, v := range []bool{true, false} {
		if got, err := ParseBoolean(FormatBoolean(v)); got != v || err != nil {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
	for _, s := range []string{"", "yes", "NO", "True", "1"} {
		if _, err := ParseBoolean(s); !errors.Is(err, ErrValue) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestParseList(t *testing.T) {
	if got := ParseList("CRC32C,None"); !slices.Equal(got, []string{"CRC32C", "None"}) {
		t.Errorf("%q", got)
	}
	if got := ParseList(""); got != nil {
		t.Errorf("%q", got)
	}
}

func TestParseBinary(t *testing.T) {
	for s, want := range map[string]string{
		"0x00ff": "\x00\xff", "0XAbC": "\x0a\xbc", "0x1": "\x01",
		"0bAP8=": "\x00\xff", "0BAP8": "\x00\xff", "0bTWFu": "Man",
	} {
		if got, err := ParseBinary(s, 4); string(got) != want || err != nil {
			t.Errorf("%q: %x, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "0", "0x", "0b", "12", "0xgg", "0b!!!!", "0b=", "0x0102030405", "0bAQIDBAU="} {
		if got, err := ParseBinary(s, 4); !errors.Is(err, ErrValue) {
			t.Errorf("%q: %x, %v", s, got, err)
		}
	}
}

func TestBinaryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, MaxBinaryLength).Draw(t, "bytes")
		got, err := ParseBinary(FormatBinary(b), len(b))
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%x, %v", got, err)
		}
		if _, err := ParseBinary(FormatBinary(b), len(b)-1); err == nil {
			t.Fatal("limit is not kept")
		}
	})
}

func TestAccumulator(t *testing.T) {
	text := []byte("InitiatorName=iqn.2026-01.x:a\x00SessionType=Normal\x00")
	for cut := range len(text) + 1 {
		var a Accumulator
		if got, done, err := a.Add(text[:cut], true); got != nil || done || err != nil || a.Len() != cut {
			t.Fatalf("%q, %v, %v", got, done, err)
		}
		got, done, err := a.Add(text[cut:], false)
		if !bytes.Equal(got, text) || !done || err != nil || a.Len() != 0 {
			t.Fatalf("%q, %v, %v", got, done, err)
		}
	}
}

func TestAccumulatorIsBounded(t *testing.T) {
	var a Accumulator
	segment := make([]byte, 8192)
	for range MaxTextLength / len(segment) {
		if _, _, err := a.Add(segment, true); err != nil {
			t.Fatal(err)
		}
	}
	if _, done, err := a.Add([]byte{0}, false); done || !errors.Is(err, ErrTextTooLong) {
		t.Fatalf("%v, %v", done, err)
	}
	if a.Len() != 0 {
		t.Errorf("%d bytes are kept", a.Len())
	}
}

// FuzzParseText: parsing never panics, and what it accepts encodes to text
// that parses to the same.
func FuzzParseText(f *testing.F) {
	f.Add([]byte("InitiatorName=iqn.2026-01.x:a\x00AuthMethod=CHAP,None\x00"))
	f.Add([]byte("CHAP_R=0x00ff\x00CHAP_C=0bAP8=\x00"))
	f.Add([]byte("A=1~2\x00\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		pairs, err := ParseText(text)
		if err != nil {
			if !errors.Is(err, ErrText) {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseText(AppendText(nil, pairs))
		if err != nil || !slices.Equal(again, pairs) {
			t.Fatalf("%v became %v, %v", pairs, again, err)
		}
		for _, p := range pairs {
			checkCodecs(t, p.Value)
		}
	})
}

// checkCodecs: a value that a codec accepts keeps its meaning when it is
// written and read again.
func checkCodecs(t *testing.T, v string) {
	if n, err := ParseNumber(v); err == nil {
		if again, err := ParseNumber(FormatNumber(n)); again != n || err != nil {
			t.Fatalf("%q: %d, %v", v, again, err)
		}
	}
	if b, err := ParseBinary(v, MaxBinaryLength); err == nil {
		if again, err := ParseBinary(FormatBinary(b), MaxBinaryLength); !bytes.Equal(again, b) || err != nil {
			t.Fatalf("%q: %x, %v", v, again, err)
		}
	}
	if strings.Join(ParseList(v), ",") != v {
		t.Fatalf("list %q", v)
	}
}

func ExampleAppendText() {
	text := AppendText(nil, []Pair{{"HeaderDigest", "CRC32C,None"}, {"InitialR2T", "No"}})
	fmt.Printf("%q\n", text)
	// Output: "HeaderDigest=CRC32C,None\x00InitialR2T=No\x00"
}
