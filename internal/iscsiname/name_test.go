package iscsiname

import (
	"strings"
	"testing"
	"unicode"
)

func TestNormal(t *testing.T) {
	for name, want := range map[string]string{
		"iqn.1993-08.org.debian:01:abcdef":                "iqn.1993-08.org.debian:01:abcdef",
		"IQN.1991-05.com.Microsoft:HOST.example":          "iqn.1991-05.com.microsoft:host.example",
		"iqn.2008-11.org.linux-kvm:my_vm":                 "iqn.2008-11.org.linux-kvm:my_vm",
		"iqn.2026-11.example:größe":                       "iqn.2026-11.example:größe",
		"iqn.localhost.hostid.7f000001":                   "iqn.localhost.hostid.7f000001",
		"iqn.com.example.hostid.7f000001:a":               "",
		"eui.02004567A425678D":                            "eui.02004567a425678d",
		"naa.62004567ba64678d0123456789abcdef":            "naa.62004567ba64678d0123456789abcdef",
		"naa.52004567ba64678d":                            "naa.52004567ba64678d",
		"":                                                "",
		"host":                                            "",
		"iqn.host":                                        "",
		"iqn.2026-13.example:a":                           "",
		"iqn.2026-11.":                                    "",
		"iqn.2026-11.example:a b":                         "",
		"iqn.2026-11.example:a\x1b[31m":                   "",
		"iqn.2026-11.example:a\u202etxt":                  "",
		"iqn.2026-11.example:a\u2066b":                    "",
		"iqn.2026-11.example:a\u200bb":                    "",
		"iqn.2026-11.example:\u05d0":                      "",
		"iqn.2026-11.example:\ufb01":                      "", // a ligature
		"iqn.2026-11.example:a,i,0x1":                     "",
		"iqn.2026-11.example:" + strings.Repeat("a", 204): "",
		"iqn.2026-11.example:\xff":                        "",
		"eui.0200":                                        "",
		"naa.62004567ba64678d01":                          "",
	} {
		got, err := Normal(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, expected %q", name, got, err, want)
		}
		if err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q: the error does not print: %q", name, err)
		}
	}
}

func TestPrintable(t *testing.T) {
	const text = "my host\x00\x1b[2J\u202e\u2069\u009b\xffé"
	if got, want := Printable(text), "my host��[2J����é"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}
