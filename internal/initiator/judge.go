package initiator

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Violation says how the target broke RFC 7143.
type Violation struct {
	Section string // of RFC 7143, such as "11.7.3"
	Detail  string // what was found and what was expected
	BHS     [headerLength]byte
}

// Error names the PDU, what was wrong with it and the section.
func (v *Violation) Error() string {
	return fmt.Sprintf("target violates RFC 7143 %s: %s: %s", v.Section, opcodeName(v.BHS[0]&opcodeMask), v.Detail)
}

func violation(p *PDU, section, format string, args ...any) error {
	return &Violation{Section: section, Detail: fmt.Sprintf(format, args...), BHS: p.BHS}
}

// layout is what a target PDU's header must look like whatever its command.
type layout struct {
	name     string
	section  string
	one      byte     // bits of byte 1 that must be 1
	zero     byte     // bits of byte 1 that must be 0
	reserved [][2]int // byte ranges [from, to) that must be 0
	noTag    bool     // ITT must be NoTag
}

// layouts and contents are indexed by opcode; no name means no opcode of a target.
var layouts = [64]layout{
	OpNOPIn:          {"NOP-In", "11.19", 0x80, 0x7f, [][2]int{{2, 4}, {36, 48}}, false},
	OpSCSIResponse:   {"SCSI Response", "11.4", 0x80, 0x61, [][2]int{{8, 16}}, false},
	OpTaskResponse:   {"Task Management Function Response", "11.6", 0x80, 0x7f, [][2]int{{3, 4}, {8, 16}, {20, 24}, {36, 48}}, false},
	OpLoginResponse:  {"Login Response", "11.13", 0, 0x30, [][2]int{{20, 24}, {38, 48}}, false},
	OpTextResponse:   {"Text Response", "11.11", 0, 0x3f, [][2]int{{2, 4}, {36, 48}}, false},
	OpDataIn:         {"Data-In", "11.7", 0, 0x38, [][2]int{{2, 3}}, false},
	OpLogoutResponse: {"Logout Response", "11.15", 0x80, 0x7f, [][2]int{{3, 4}, {8, 16}, {20, 24}, {36, 40}, {44, 48}}, false},
	OpR2T:            {"R2T", "11.8", 0x80, 0x7f, [][2]int{{2, 8}}, false},
	OpAsync:          {"Asynchronous Message", "11.9", 0x80, 0x7f, [][2]int{{2, 4}, {20, 24}, {44, 48}}, true},
	OpReject:         {"Reject", "11.17", 0x80, 0x7f, [][2]int{{3, 4}, {8, 16}, {20, 24}, {40, 48}}, true},
}

func opcodeName(opcode byte) string {
	if name := layouts[opcode].name; name != "" {
		return name
	}
	return fmt.Sprintf("opcode %#02x", opcode)
}

// WindowOpen reports whether CmdSN may be used.
func (c *Conn) WindowOpen() bool { return !c.known || !before(c.MaxCmdSN, c.CmdSN) }

// judgeFrame checks what framing itself relies on, before the rest is read.
func (c *Conn) judgeFrame(p *PDU) error {
	if p.ahsLength() != 0 {
		return violation(p, "11.2.1.5", "TotalAHSLength %d bytes, no target PDU has an AHS", p.ahsLength())
	}
	if limit := int(c.Params.MaxRecvDataSegmentLength); p.dataLength() > limit {
		return violation(p, "13.12", "data segment of %d bytes, MaxRecvDataSegmentLength is %d", p.dataLength(), limit)
	}
	return nil
}

func (c *Conn) judgeDigests(p *PDU, raw []byte, f frame) error {
	if f.data > f.ahsEnd {
		if err := judgeDigest(p, "header", raw[:f.ahsEnd], raw[f.ahsEnd:f.data]); err != nil {
			return err
		}
	}
	for _, b := range raw[f.data+p.dataLength() : f.dataEnd] {
		if b != 0 {
			return violation(p, "11.2.3", "padding byte %#02x, expected 0", b)
		}
	}
	if f.end > f.dataEnd {
		return judgeDigest(p, "data", raw[f.data:f.dataEnd], raw[f.dataEnd:f.end])
	}
	return nil
}

func judgeDigest(p *PDU, which string, covered, digest []byte) error {
	want, got := crc32.Checksum(covered, castagnoli), binary.LittleEndian.Uint32(digest)
	if got != want {
		return violation(p, "13.1", "%s digest %#08x, computed %#08x", which, got, want)
	}
	return nil
}

// Judge checks a complete PDU, of which Data may be missing in Data-In, and
// moves the connection's sequence numbers. Receive calls it; only the owner of
// a detached socket has to. It does not allocate unless it finds a *Violation.
func (c *Conn) Judge(p *PDU) error {
	if layouts[p.Opcode()].name == "" {
		return violation(p, "11.2.1.2", "no opcode of a target")
	}
	if err := judgeLayout(p); err != nil {
		return err
	}
	if check := contents[p.Opcode()]; check != nil {
		if err := check(p); err != nil {
			return err
		}
	}
	if (p.Opcode() == OpLoginResponse) != c.loginPhase {
		return violation(p, "6.3", "login phase is %t", c.loginPhase)
	}
	if p.Opcode() == OpLoginResponse && p.BHS[36] != 0 {
		return nil // sequence numbers are valid only with status class 0 (11.13.5)
	}
	if err := c.judgeStatSN(p); err != nil {
		return err
	}
	return c.judgeWindow(p)
}

func judgeLayout(p *PDU) error {
	l := &layouts[p.Opcode()]
	if p.BHS[0]&^opcodeMask != 0 {
		return violation(p, l.section, "byte 0 is %#02x, its two upper bits are reserved", p.BHS[0])
	}
	if p.BHS[1]&l.one != l.one || p.BHS[1]&l.zero != 0 {
		return violation(p, l.section, "byte 1 is %#02x, bits %#02x must be set and %#02x clear", p.BHS[1], l.one, l.zero)
	}
	for _, r := range l.reserved {
		for i := r[0]; i < r[1]; i++ {
			if p.BHS[i] != 0 {
				return violation(p, l.section, "reserved byte %d is %#02x", i, p.BHS[i])
			}
		}
	}
	if l.noTag && p.ITT() != NoTag {
		return violation(p, l.section, "initiator task tag %#08x, expected %#08x", p.ITT(), uint32(NoTag))
	}
	return nil
}

// contents holds the rules of single PDUs that no table column expresses.
var contents = [64]func(*PDU) error{
	OpNOPIn:          judgeNOPIn,
	OpTaskResponse:   judgeTaskResponse,
	OpTextResponse:   judgeTextResponse,
	OpDataIn:         judgeDataInFlags,
	OpSCSIResponse:   judgeSCSIResponse,
	OpLogoutResponse: judgeLogoutResponse,
	OpR2T:            judgeR2TTag,
	OpReject:         judgeReject,
}

func judgeNOPIn(p *PDU) error {
	if p.ITT() != NoTag && p.TTT() != NoTag {
		return violation(p, "11.19.1", "answers ITT %#08x and yet carries TTT %#08x", p.ITT(), p.TTT())
	}
	if p.ITT() == NoTag && len(p.Data) != 0 {
		return violation(p, "11.19.2", "%d bytes of ping data in a target's own NOP-In, expected none", len(p.Data))
	}
	return nil
}

func judgeTaskResponse(p *PDU) error {
	if r := p.BHS[2]; r > 6 && r != 255 {
		return violation(p, "11.6.1", "response %d is reserved", r)
	}
	return nil
}

func judgeTextResponse(p *PDU) error {
	final, more := p.Has(FlagFinal), p.Has(FlagContinue)
	if final && more {
		return violation(p, "11.11.2", "F and C both set")
	}
	if final != (p.TTT() == NoTag) {
		return violation(p, "11.11.4", "F is %t with target transfer tag %#08x", final, p.TTT())
	}
	return nil
}

func judgeDataInFlags(p *PDU) error {
	status := p.Has(FlagStatus)
	switch {
	case status && !p.Has(FlagFinal):
		return violation(p, "11.7.3", "S set without F")
	case p.Has(FlagOverflow | FlagUnderflow):
		return violation(p, "11.7.3", "O and U both set")
	case !status && p.BHS[1]&(FlagOverflow|FlagUnderflow) != 0:
		return violation(p, "11.7.3", "residual flags %#02x without S", p.BHS[1])
	case !status && p.BHS[3] != 0:
		return violation(p, "11.7.3", "status %#02x without S", p.BHS[3])
	case !status && p.StatSN() != 0:
		return violation(p, "11.7", "StatSN %#08x without S, the field is reserved then", p.StatSN())
	}
	return nil
}

func judgeSCSIResponse(p *PDU) error {
	switch {
	case p.Has(FlagOverflow | FlagUnderflow), p.Has(FlagBidiOver | FlagBidiUnder):
		return violation(p, "11.4.1", "overflow and underflow both set: byte 1 is %#02x", p.BHS[1])
	case p.BHS[1]&(FlagOverflow|FlagUnderflow) == 0 && p.U32(AtResidual) != 0:
		return violation(p, "11.4.5.1", "residual count %d without O or U", p.U32(AtResidual))
	case p.BHS[1]&(FlagBidiOver|FlagBidiUnder) == 0 && p.U32(AtOffset) != 0:
		return violation(p, "11.4.5.2", "bidirectional residual count %d without o or u", p.U32(AtOffset))
	case p.BHS[2] > 1 && p.BHS[2] < 0x80:
		return violation(p, "11.4.3", "response %#02x is reserved", p.BHS[2])
	case p.BHS[2] != 0 && (p.U32(AtDataSN) != 0 || p.BHS[1]&0x1e != 0):
		return violation(p, "11.4.3", "response %#02x with ExpDataSN or residual flags", p.BHS[2])
	}
	return judgeSense(p)
}

// judgeSense checks the sense data segment: SenseLength, then as many bytes,
// and autosense with every CHECK CONDITION.
func judgeSense(p *PDU) error {
	if len(p.Data) == 1 {
		return violation(p, "11.4.7", "data segment of 1 byte cannot hold SenseLength")
	}
	sense := 0
	if len(p.Data) >= 2 {
		sense = int(binary.BigEndian.Uint16(p.Data))
	}
	if sense+2 > len(p.Data) && sense > 0 {
		return violation(p, "11.4.7.1", "SenseLength %d in a data segment of %d bytes", sense, len(p.Data))
	}
	if p.BHS[2] != 0 || p.BHS[3] != StatusCheckCondition {
		return nil
	}
	if sense < 8 {
		return violation(p, "11.4.7", "CHECK CONDITION with %d bytes of sense data", sense)
	}
	if code := p.Data[2] & 0x7f; code < 0x70 || code > 0x73 {
		return violation(p, "11.4.7", "sense response code %#02x, expected 70h to 73h", code)
	}
	return nil
}

func judgeLogoutResponse(p *PDU) error {
	if p.BHS[2] > 3 {
		return violation(p, "11.15.1", "response %d is reserved", p.BHS[2])
	}
	return nil
}

func judgeR2TTag(p *PDU) error {
	if p.TTT() == NoTag {
		return violation(p, "11.8.5", "target transfer tag %#08x is reserved", p.TTT())
	}
	return nil
}

func judgeReject(p *PDU) error {
	if r := p.BHS[2]; r < 2 || r > 0x0c {
		return violation(p, "11.17.1", "reason %#02x is reserved", r)
	}
	if len(p.Data) < headerLength {
		return violation(p, "11.17", "%d bytes of the rejected PDU, expected its complete header", len(p.Data))
	}
	return nil
}

// advancesStatSN reports whether a PDU carries a status of its own. NOP-In
// pings and R2T show the next StatSN without using it up; Data-In has one only
// with S.
func advancesStatSN(p *PDU) bool {
	switch p.Opcode() {
	case OpR2T:
		return false
	case OpDataIn:
		return p.Has(FlagStatus)
	case OpNOPIn:
		return p.ITT() != NoTag
	}
	return true
}

func (c *Conn) judgeStatSN(p *PDU) error {
	if p.Opcode() == OpDataIn && !p.Has(FlagStatus) {
		return nil
	}
	if !c.statSNKnown {
		c.ExpStatSN, c.statSNKnown = p.StatSN(), true
	}
	if p.StatSN() != c.ExpStatSN {
		return violation(p, "4.2.2.2", "StatSN %#08x, expected %#08x", p.StatSN(), c.ExpStatSN)
	}
	if advancesStatSN(p) {
		c.ExpStatSN++
	}
	return nil
}

func (c *Conn) judgeWindow(p *PDU) error {
	exp, last := p.U32(AtExpCmdSN), p.U32(AtMaxCmdSN)
	ordered := c.windowKnown && c.Params.ErrorRecoveryLevel == 0 // else some PDUs wait for others that come later
	switch {
	case before(last, exp-1):
		return violation(p, "4.2.2.1", "MaxCmdSN %#08x is below ExpCmdSN %#08x - 1", last, exp)
	case before(c.CmdSN, exp):
		return violation(p, "4.2.2.1", "ExpCmdSN %#08x, the next CmdSN is only %#08x", exp, c.CmdSN)
	case ordered && before(exp, c.exp):
		return violation(p, "4.2.2.1", "ExpCmdSN %#08x went back from %#08x", exp, c.exp)
	case ordered && before(last, c.max):
		return violation(p, "4.2.2.1", "MaxCmdSN %#08x went back from %#08x", last, c.max)
	}
	c.exp, c.max, c.windowKnown = exp, last, true
	c.hear(exp, last)
	return nil
}

// hear takes the target's word. What came on one connection may be older than what
// another has brought.
func (o *Order) hear(exp, last uint32) {
	if !o.known || before(o.ExpCmdSN, exp) {
		o.ExpCmdSN = exp
	}
	if !o.known || before(o.MaxCmdSN, last) {
		o.MaxCmdSN = last
	}
	o.known = true
}
