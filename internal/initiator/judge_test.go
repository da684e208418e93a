package initiator

import (
	"bytes"
	"testing"
)

// ping is a target's own NOP-In, right in every field but the numbers.
func ping() *PDU {
	p := NewPDU(OpNOPIn, FlagFinal, nil)
	p.SetU32(AtITT, NoTag)
	p.SetU32(AtTTT, 7)
	return p
}

func textResponse(flags byte, ttt uint32) *PDU {
	p := NewPDU(OpTextResponse, flags, nil)
	p.SetU32(AtTTT, ttt)
	return p
}

func dataIn(flags byte) *PDU {
	p := NewPDU(OpDataIn, flags, nil)
	p.SetU32(AtTTT, NoTag)
	return p
}

func scsiResponse(status byte, data []byte) *PDU {
	p := NewPDU(OpSCSIResponse, FlagFinal, data)
	p.BHS[3] = status
	return p
}

// with changes one byte.
func with(p *PDU, at int, b byte) *PDU {
	p.BHS[at] = b
	return p
}

// TestConnectionViolations sends one wrong PDU each; the numbers are right at
// the start: StatSN 100, ExpCmdSN 10, MaxCmdSN 20, next CmdSN 10.
func TestConnectionViolations(t *testing.T) {
	tests := []struct {
		name    string
		section string
		pdu     *PDU
		spoil   func(p *PDU) // after numbering
	}{
		{"initiator opcode", "11.2.1.2", NewPDU(OpSCSICommand, FlagFinal, nil), nil},
		{"reserved bit of byte 0", "11.19", with(ping(), 0, OpNOPIn|0x40), nil},
		{"F missing", "11.19", with(ping(), 1, 0), nil},
		{"reserved bit of byte 1", "11.19", with(ping(), 1, 0x81), nil},
		{"reserved byte", "11.19", with(ping(), 40, 1), nil},
		{"AHS", "11.2.1.5", &PDU{BHS: [48]byte{OpNOPIn, FlagFinal, 4: 1}, KeepLengths: true}, nil},
		{"data too long", "13.12", NewPDU(OpNOPIn, FlagFinal, make([]byte, 8193)), nil},
		{"StatSN", "4.2.2.2", ping(), func(p *PDU) { p.SetU32(AtStatSN, 101) }},
		{"MaxCmdSN far below ExpCmdSN", "4.2.2.1", ping(), func(p *PDU) { p.SetU32(AtMaxCmdSN, 8) }},
		{"ExpCmdSN ahead of CmdSN", "4.2.2.1", ping(), func(p *PDU) { p.SetU32(AtExpCmdSN, 11) }},
		{"ping with data", "11.19.2", func() *PDU { p := ping(); p.Data = []byte("x"); return p }(), nil},
		{"answer with TTT", "11.19.1", with(ping(), AtITT, 0), nil},
		{"login response in full feature phase", "6.3", NewPDU(OpLoginResponse, 0, nil), nil},
		{"text F and C", "11.11.2", textResponse(FlagFinal|FlagContinue, NoTag), nil},
		{"text F with TTT", "11.11.4", textResponse(FlagFinal, 3), nil},
		{"text without F or TTT", "11.11.4", textResponse(0, NoTag), nil},
		{"Data-In S without F", "11.7.3", dataIn(FlagStatus), nil},
		{"Data-In O and U", "11.7.3", dataIn(FlagFinal | FlagStatus | FlagOverflow | FlagUnderflow), nil},
		{"Data-In U without S", "11.7.3", dataIn(FlagFinal | FlagUnderflow), nil},
		{"Data-In status without S", "11.7.3", with(dataIn(FlagFinal), 3, 2), nil},
		{"Data-In StatSN without S", "11.7", dataIn(FlagFinal), func(p *PDU) { p.SetU32(AtStatSN, 100) }},
		{"response O and U", "11.4.1", with(scsiResponse(0, nil), 1, 0x86), nil},
		{"residual without flag", "11.4.5.1", with(scsiResponse(0, nil), 47, 1), nil},
		{"bidirectional residual without flag", "11.4.5.2", with(scsiResponse(0, nil), 43, 1), nil},
		{"reserved response", "11.4.3", with(scsiResponse(0, nil), 2, 5), nil},
		{"failed response with ExpDataSN", "11.4.3", with(with(scsiResponse(0, nil), 2, 1), 39, 1), nil},
		{"CHECK CONDITION without sense", "11.4.7", scsiResponse(StatusCheckCondition, nil), nil},
		{"half a SenseLength", "11.4.7", scsiResponse(StatusGood, []byte{0}), nil},
		{"SenseLength too long", "11.4.7.1", scsiResponse(StatusCheckCondition, []byte{0, 18, 0x70}), nil},
		{"sense format", "11.4.7", scsiResponse(StatusCheckCondition, append([]byte{0, 18, 0x60}, make([]byte, 17)...)), nil},
		{"task response", "11.6.1", with(NewPDU(OpTaskResponse, FlagFinal, nil), 2, 7), nil},
		{"logout response", "11.15.1", with(NewPDU(OpLogoutResponse, FlagFinal, nil), 2, 4), nil},
		{"R2T without TTT", "11.8.5", noTTT(NewPDU(OpR2T, FlagFinal, nil)), nil},
		{"async with a tag", "11.9", NewPDU(OpAsync, FlagFinal, nil), nil},
		{"reject reason", "11.17.1", reject(0x0d, headerLength), nil},
		{"reject without header", "11.17", reject(4, 20), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := converse(t, defaultParams(), func(f *fake) {
				f.number(test.pdu)
				if test.spoil != nil {
					test.spoil(test.pdu)
				}
				f.write(test.pdu)
			})
			_, err := c.Receive(0)
			wantViolation(t, err, test.section)
		})
	}
}

func noTTT(p *PDU) *PDU {
	p.SetU32(AtTTT, NoTag)
	return p
}

func reject(reason byte, header int) *PDU {
	p := NewPDU(OpReject, FlagFinal, make([]byte, header))
	p.BHS[2] = reason
	p.SetU32(AtITT, NoTag)
	return p
}

func TestWindowMustNotShrink(t *testing.T) {
	for name, change := range map[string]func(f *fake){
		"MaxCmdSN": func(f *fake) { f.maxCmdSN-- },
		"ExpCmdSN": func(f *fake) { f.expCmdSN-- },
	} {
		c := converse(t, defaultParams(), func(f *fake) {
			f.send(ping())
			change(f)
			f.send(ping())
		})
		if _, err := c.Receive(0); err != nil {
			t.Fatal(name, err)
		}
		_, err := c.Receive(0)
		wantViolation(t, err, "4.2.2.1")
	}
}

func TestPadding(t *testing.T) {
	c := converse(t, defaultParams(), func(f *fake) {
		p := reject(4, headerLength+1)
		f.number(p).setLengths()
		f.nc.Write(append(append(p.BHS[:], p.Data...), 0, 1, 0))
	})
	_, err := c.Receive(0)
	wantViolation(t, err, "11.2.3")
}

// TestDigests lets two Conns talk to each other through the wire format.
func TestDigests(t *testing.T) {
	params := defaultParams()
	params.HeaderDigest, params.DataDigest = true, true
	tests := []struct {
		name         string
		header, data bool
		section      string
	}{{"right", false, false, ""}, {"header", true, false, "13.1"}, {"data", false, true, "13.1"}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := converse(t, params, func(f *fake) {
				p := reject(4, headerLength+1)
				p.BadHeaderDigest, p.BadDataDigest = test.header, test.data
				f.number(p).setLengths()
				sender := NewConn(nil)
				sender.Params, sender.loginPhase = params, false
				f.nc.Write(sender.appendPDU(nil, p))
			})
			p, err := c.Receive(0)
			if test.section != "" {
				wantViolation(t, err, test.section)
			} else if err != nil || len(p.Data) != headerLength+1 {
				t.Error(p, err)
			}
		})
	}
}

// TestDigestVector pins byte order and polynomial to RFC 7143 appendix A.4: 32
// bytes of zeros are aa 36 91 8a on the wire.
func TestDigestVector(t *testing.T) {
	got := appendDigest(nil, make([]byte, 32), false)
	if want := [4]byte{0xaa, 0x36, 0x91, 0x8a}; [4]byte(got) != want {
		t.Errorf("digest %x, expected %x", got, want)
	}
}

// byteStream is a transport that only ever receives, and takes what is sent.
type byteStream struct{ *bytes.Reader }

func (byteStream) Write(b []byte) (int, error) { return len(b), nil }

// FuzzStep feeds arbitrary bytes to a session with a read and a write under way:
// whatever a target sends, the judge answers with an error, not with a panic.
func FuzzStep(f *testing.F) {
	f.Add(ping().BHS[:])
	f.Add(append(dataIn(FlagFinal | FlagStatus).BHS[:], make([]byte, 8)...))
	f.Add(scsiResponse(StatusCheckCondition, nil).BHS[:])
	f.Add(reject(4, headerLength).BHS[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		params := defaultParams()
		params.HeaderDigest = len(b)%2 == 1
		c := NewEstablished(byteStream{bytes.NewReader(b)}, params, 0, 0)
		for _, command := range []Command{{CDB: []byte{0x28}, InLen: 600}, {CDB: []byte{0x2a}, Out: make([]byte, 9000)}} {
			if _, err := c.Start(command); err != nil {
				t.Fatal(err)
			}
		}
		for {
			if _, err := c.Step(0); err != nil {
				return
			}
		}
	})
}
