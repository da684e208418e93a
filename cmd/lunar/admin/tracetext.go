package admin

import (
	"fmt"
	"strings"

	"lunar/control"
	"lunar/internal/iscsiname"
)

// traceTime is how a line of a trace begins.
const traceTime = "15:04:05.000000"

// lineOf is a line of a trace in words, with its end; empty: it is not shown.
func lineOf(line *control.TraceLine) string {
	if c := line.Connection; c != nil {
		return fmt.Sprintf("connection %d: %s at %s\n", c.CID, iscsiname.Printable(c.Address), iscsiname.Printable(c.Portal))
	}
	if r := line.Relayed; r != nil {
		return gapOf(r.MissingBefore) + iscsiname.Printable(fmt.Sprintf("%s relayed  %d to %s itt=0x%x lun=%d waited=%.1fus away=%.1fus there=%.1fus %s",
			r.Time.Local().Format(traceTime), r.CID, r.Node, r.ITT, r.LUN, r.Waited, r.Away, r.There, map[bool]string{true: "ended", false: "not ended"}[r.Ended])) + "\n"
	}
	p := line.PDU
	if p == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-8s %d %s", p.Time.Local().Format(traceTime), p.Direction, p.CID, p.PDU)
	for i := range traceWords {
		if text := traceWords[i].of(p); text != "" {
			b.WriteByte(' ')
			b.WriteString(traceWords[i].name)
			b.WriteString(text)
		}
	}
	return gapOf(p.MissingBefore) + iscsiname.Printable(b.String()) + "\n"
}

func gapOf(missing int) string {
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("... %d PDUs are missing\n", missing)
}

// traceWords are what a line says of a PDU, in this order. What is empty is left out.
var traceWords = []struct {
	name string // before the text
	of   func(*control.TracedPDU) string
}{
	{"", func(p *control.TracedPDU) string { return p.Command }},
	{"", func(p *control.TracedPDU) string { return p.Function }},
	{"", func(p *control.TracedPDU) string { return p.Status }},
	{"", func(p *control.TracedPDU) string { return p.Response }},
	{"reason=", func(p *control.TracedPDU) string { return quotedIf(p.Reason) }},
	{"lun=", func(p *control.TracedPDU) string { return decimal(p.LUN) }},
	{"itt=", func(p *control.TracedPDU) string { return hexadecimal(p.ITT) }},
	{"ttt=", func(p *control.TracedPDU) string { return hexadecimal(p.TTT) }},
	{"referenced=", func(p *control.TracedPDU) string { return hexadecimal(p.ReferencedTag) }},
	{"after=", func(p *control.TracedPDU) string {
		if p.SinceRequest == nil {
			return ""
		}
		return fmt.Sprintf("%.1fus", *p.SinceRequest)
	}},
	{"transfer=", func(p *control.TracedPDU) string { return p.Transfer }},
	{"expected=", func(p *control.TracedPDU) string { return unlessZero(p.Expected) }},
	{"desired=", func(p *control.TracedPDU) string { return decimal(p.Desired) }},
	{"offset=", func(p *control.TracedPDU) string { return decimal(p.Offset) }},
	{"data=", func(p *control.TracedPDU) string { n := uint32(p.DataLength); return unlessZero(&n) }},
	{"ahs=", func(p *control.TracedPDU) string { n := uint32(p.AHSLength); return unlessZero(&n) }},
	{"residual=", func(p *control.TracedPDU) string {
		if p.Residual == nil {
			return ""
		}
		return map[bool]string{false: "under:", true: "over:"}[p.Over] + decimal(p.Residual)
	}},
	{"", func(p *control.TracedPDU) string { return ifSo(p.Final, "final") }},
	{"", func(p *control.TracedPDU) string { return ifSo(p.Immediate, "immediate") }},
	{"", func(p *control.TracedPDU) string { return ifSo(p.Again, "again") }},
	{"", func(p *control.TracedPDU) string { return ifSo(p.Damaged, "wrong-data-digest") }},
	{"attribute=", func(p *control.TracedPDU) string { return quotedIf(p.Attribute) }},
	{"CmdSN=", func(p *control.TracedPDU) string { return decimal(p.CmdSN) }},
	{"ExpStatSN=", func(p *control.TracedPDU) string { return decimal(p.ExpStatSN) }},
	{"StatSN=", func(p *control.TracedPDU) string { return decimal(p.StatSN) }},
	{"ExpCmdSN=", func(p *control.TracedPDU) string { return decimal(p.ExpCmdSN) }},
	{"MaxCmdSN=", func(p *control.TracedPDU) string { return decimal(p.MaxCmdSN) }},
	{"DataSN=", func(p *control.TracedPDU) string { return decimal(p.DataSN) }},
	{"R2TSN=", func(p *control.TracedPDU) string { return decimal(p.R2TSN) }},
	{"ExpDataSN=", func(p *control.TracedPDU) string { return unlessZero(p.ExpDataSN) }},
	{"cdb=", func(p *control.TracedPDU) string { return p.CDB }},
}

func decimal[T uint32 | uint64](n *T) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func unlessZero(n *uint32) string {
	if n == nil || *n == 0 {
		return ""
	}
	return decimal(n)
}

func hexadecimal(n *uint32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("0x%x", *n)
}

func quotedIf(text string) string {
	if strings.Contains(text, " ") {
		return fmt.Sprintf("%q", text)
	}
	return text
}

func ifSo(yes bool, word string) string {
	if yes {
		return word
	}
	return ""
}
