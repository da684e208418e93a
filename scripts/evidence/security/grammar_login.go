package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"lunar/internal/initiator"
)

// loginKeys are the keys of RFC 7143 with the types of their values.
var loginKeys = []struct {
	name  string
	value func(*rand.Rand) string
}{
	{"InitiatorName", initiatorText}, {"InitiatorName", initiatorText}, {"TargetName", targetText}, {"TargetName", targetText},
	{"InitiatorAlias", anyText}, {"SessionType", oneOf("Normal", "Discovery", "normal", "")},
	{"AuthMethod", oneOf("None", "CHAP", "CHAP,None", "None,CHAP", "KRB5,SRP,CHAP", "Reject", "None,None", ",")},
	{"CHAP_A", oneOf("5", "5,6,7,8", "8", "255", "0", "5,5,5", "-1")}, {"CHAP_I", numeral}, {"CHAP_C", binaryText}, {"CHAP_N", oneOf("canary", "mallory", "", "x")}, {"CHAP_R", binaryText},
	{"HeaderDigest", digests}, {"DataDigest", digests},
	{"MaxRecvDataSegmentLength", numeral}, {"MaxBurstLength", numeral}, {"FirstBurstLength", numeral}, {"MaxOutstandingR2T", numeral}, {"MaxConnections", numeral},
	{"DefaultTime2Wait", numeral}, {"DefaultTime2Retain", numeral}, {"ErrorRecoveryLevel", numeral},
	{"InitialR2T", yesNo}, {"ImmediateData", yesNo}, {"DataPDUInOrder", yesNo}, {"DataSequenceInOrder", yesNo}, {"IFMarker", yesNo}, {"OFMarkInt", oneOf("1~2", "65535~1", "Reject")},
	{"RDMAExtensions", yesNo}, {"iSCSIProtocolLevel", numeral}, {"TaskReporting", oneOf("RFC3720", "ResponseFence,FastAbort", "x")},
	{"SendTargets", oneOf("All", "", openTarget)}, {"TargetAlias", anyText}, {"TargetPortalGroupTag", numeral}, {"X-com.example.fuzz", anyText},
}

func oneOf(values ...string) func(*rand.Rand) string {
	return func(r *rand.Rand) string { return pick(r, values...) }
}

var (
	yesNo   = oneOf("Yes", "No", "yes", "Irrelevant", "Reject", "NotUnderstood", "?")
	digests = oneOf("None", "CRC32C", "CRC32C,None", "None,CRC32C", "CRC64", "CRC32C,CRC32C", "")
)

func initiatorText(r *rand.Rand) string {
	return pick(r, strangerName, malloryName, canaryName, "iqn.2026-11.example.host:"+anyText(r), "eui.0123456789abcdef", "naa.52004567ba64678d", anyText(r))
}

func targetText(r *rand.Rand) string {
	return pick(r, openTarget, openTarget, canaryTarget, readerTarget, prefix+"hidden", prefix+anyText(r))
}

// anyText has what a log, a glob, a path or a terminal may trip over.
func anyText(r *rand.Rand) string {
	return pick(r, "", "a", strings.Repeat("x", r.IntN(300)), "\x1b[2J", "\u202egnp", "%s%n", "../../etc", "*?[", "é\xff", "=", "a=b", "\r\nlevel=ERROR", strings.Repeat("=", 70), "A B", fmt.Sprint(number(r)))
}

func numeral(r *rand.Rand) string {
	n := number(r)
	return pick(r, fmt.Sprint(n), fmt.Sprintf("0x%x", n), fmt.Sprint(n%70000), fmt.Sprint(n%5), "-1", "", "1e3", "0x", "010", " 1", strings.Repeat("9", r.IntN(300)), "Reject")
}

func binaryText(r *rand.Rand) string {
	b := noise(r, pick(r, 0, 1, 16, 20, 32, 64, 1024, 1025, 4000))
	return pick(r, "0x"+hex.EncodeToString(b), "0X"+hex.EncodeToString(b), "0b"+base64.StdEncoding.EncodeToString(b), "0b"+base64.RawStdEncoding.EncodeToString(b), "0x1", "0bé", hex.EncodeToString(b))
}

// loginText draws some keys, with their ends mostly where they belong.
func loginText(r *rand.Rand) []byte {
	var b strings.Builder
	if !odds(r, 4) {
		b.WriteString("InitiatorName=" + initiatorText(r) + "\x00TargetName=" + targetText(r) + "\x00SessionType=Normal\x00")
	}
	for range r.IntN(pick(r, 4, 12, 60)) {
		k := loginKeys[r.IntN(len(loginKeys))]
		value := k.value
		if odds(r, 12) { // of another key's type
			value = loginKeys[r.IntN(len(loginKeys))].value
		}
		b.WriteString(k.name + pick(r, "=", "=", "=", "=", "=", "=", "", "\x00", "==") + value(r) + pick(r, "\x00", "\x00", "\x00", "\x00", "\x00", "\x00", "", "\x00\x00"))
	}
	return []byte(b.String())
}

// fuzzLogin sends login requests over a connection of their own.
func fuzzLogin(s *scene) sender {
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		nc, err := dialFrom(ctx, fuzzAddress(r), pick(r, s.Portal, s.Portal, s.Back))
		if err != nil {
			return "", err
		}
		defer nc.Close()
		c := initiator.NewConn(nc)
		c.Timeout, c.CmdSN = 200*time.Millisecond, 1
		isid := pick(r, [6]byte{0x80, 0, 0xf, 0, 0, byte(r.IntN(4))}, canaryISID, [6]byte(noise(r, 6)))
		signature := ""
		for range 1 + r.IntN(5) {
			p := loginRequest(pick(r, 0x81, 0x87, 0x83, 0x00, 0x04, 0x40, 0x44, byte(r.Uint32())), nil, isid)
			p.Data = loginText(r)
			spoilLogin(r, p)
			if c.Send(p) != nil {
				break
			}
			answer, err := c.Receive(0)
			if err != nil {
				signature += ended(err)
				break
			}
			signature += fmt.Sprintf("%02x/%02x%02x ", answer.Opcode(), answer.BHS[36], answer.BHS[37])
			if answer.BHS[36] != 0 || answer.Has(0x83) {
				break
			}
		}
		return signature, nil
	}
}

// spoilLogin breaks a rule of the header now and then.
func spoilLogin(r *rand.Rand, p *initiator.PDU) {
	switch r.IntN(12) {
	case 0:
		p.BHS[r.IntN(48)] = byte(r.Uint32())
	case 1:
		p.BHS[14], p.BHS[15] = 0, byte(r.IntN(8)) // TSIH
	case 2:
		p.BHS[20], p.BHS[21] = byte(r.Uint32()), byte(r.Uint32()) // CID
	case 3:
		p.BHS[2], p.BHS[3] = byte(r.IntN(3)), byte(r.IntN(3)) // versions
	case 4:
		p.KeepLengths = true
		p.BHS[5], p.BHS[6], p.BHS[7] = byte(r.IntN(2)), byte(r.Uint32()), byte(r.Uint32())
	case 5:
		p.AHS = noise(r, 4*r.IntN(256))
	}
}

// fuzzAddress is one of some that inputs come from.
func fuzzAddress(r *rand.Rand) string {
	return fmt.Sprintf("127.0.%d.%d", 16+r.IntN(16), 1+r.IntN(200))
}
