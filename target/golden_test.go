package target_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/pdu"
	"lunar/target/targettest"
)

var rewrite = flag.Bool("rewrite", false, "write what the target says now into the golden conversations")

// TestGoldenConversations plays testdata/*.txt. A line starts with
//
//	#                  a comment
//	server key=value   what the server is like: queue, buffers, memory, recovery, connections (numbers), nop (a duration); the first line
//	login a Key=Value  opens session a
//	join b a cid=1     opens connection b of session a, also with Key=Value
//	lose a 2           the second PDU that the target answers next does not reach a
//	cut a              breaks the connection off
//	a> PDU field...    a sends; sequence numbers that are not given are the right ones
//	hold, release      writes of the store end only after release
//	await a            waits for a PDU that comes by a timer
//	a< PDU field...    what the target answered: written by -rewrite
//
// Sequence numbers count from 1 at the login. Data is written as runs: 512*a is
// 512 times the letter a, 0 is a zero byte.
func TestGoldenConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d conversations, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) { play(t, path) })
	}
}

func play(t *testing.T, path string) {
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, sessions: map[string]*actor{}}
	for line := range strings.Lines(string(want)) {
		s.act(strings.TrimRight(line, "\n"))
	}
	if bytes.Equal(s.out.Bytes(), want) {
		return
	}
	if *rewrite {
		if err := os.WriteFile(path, s.out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s:\n%s", path, firstChange(string(want), s.out.String()))
}

// firstChange shows the first line that differs.
func firstChange(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\nexpected %s\nfound    %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(b), len(a))
}

// stage is a conversation being played.
type stage struct {
	t        *testing.T
	out      bytes.Buffer // the conversation as it went
	server   *served
	store    *errstore.Store
	order    []*actor
	sessions map[string]*actor
}

// actor is a session of the conversation.
type actor struct {
	name             string
	conn             *initiator.Conn
	wire             *targettest.Conn
	statSN0, cmdSN0  uint32 // what is written as 1
	closed, violated bool
	loses            int // the PDU that is lost, counted from the next one
}

func (s *stage) act(line string) {
	words := strings.Fields(line)
	if len(words) > 0 && strings.HasSuffix(words[0], "<") {
		return // is said again
	}
	s.out.WriteString(line + "\n")
	switch {
	case len(words) == 0 || strings.HasPrefix(line, "#"):
		return
	case words[0] == "server":
		s.serve(words[1:])
	case words[0] == "login":
		s.login(words[1], words[2:])
	case words[0] == "join":
		s.join(words[1], s.sessions[words[2]], words[3:])
	case words[0] == "lose":
		s.sessions[words[1]].loses = s.number(words[2])
	case words[0] == "cut":
		s.sessions[words[1]].wire.Close()
	case words[0] == "hold":
		s.store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	case words[0] == "release":
		s.store.SetRules()
		s.store.Release(-1)
	case words[0] == "await":
		s.await(s.sessions[words[1]])
	case strings.HasSuffix(words[0], ">"):
		s.send(s.sessions[strings.TrimSuffix(words[0], ">")], words[1], fields(words[2:]))
	default:
		s.t.Fatalf("line %q is not understood", line)
	}
	s.listen()
}

// fields maps name=value, and flags such as F to themselves.
func fields(words []string) map[string]string {
	f := make(map[string]string)
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		f[name] = value
	}
	return f
}

func (s *stage) number(text string) int {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return int(n)
}

func (s *stage) serve(words []string) {
	config := target.Config{Threads: 1, Buffers: 4 << 20, NOPInterval: -1}
	for name, value := range fields(words) {
		switch name {
		case "queue":
			config.Limits.QueueDepth = s.number(value)
		case "buffers":
			config.Buffers = s.number(value)
		case "memory":
			config.Limits.SessionMemory = s.number(value)
		case "recovery":
			config.Limits.Recovery = s.number(value)
		case "connections":
			config.Limits.MaxConnections = s.number(value)
		case "nop":
			config.NOPInterval, _ = time.ParseDuration(value)
			config.NOPTimeout = config.NOPInterval
		}
	}
	ram, err := backstore.NewRAM(8<<20, 512)
	if err != nil {
		s.t.Fatal(err)
	}
	s.store = errstore.Wrap(ram)
	s.server = serve(s.t, s.store, 512, config)
}

// login opens a session and works off its unit attentions, before its sequence
// numbers begin to count.
func (s *stage) login(name string, words []string) {
	if s.server == nil {
		s.serve(nil)
	}
	o := initiator.Options{ISID: [6]byte{0x80, 0, 0, 0, 0, name[0]}}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		o.Keys = append(o.Keys, initiator.Key{Name: key, Value: value})
	}
	c := s.server.connect(s.t, overMemory(targettest.Wire{}), o)
	if err := c.Ready(0); err != nil {
		s.t.Fatal(err)
	}
	s.enter(&actor{name: name, conn: c, cmdSN0: c.CmdSN - 1})
}

// enter begins to count the status numbers of a connection.
func (s *stage) enter(a *actor) {
	a.wire, a.statSN0 = a.conn.Transport().(*targettest.Conn), a.conn.ExpStatSN-1
	s.sessions[a.name] = a
	s.order = append(s.order, a)
}

// join opens a further connection of a session.
func (s *stage) join(name string, of *actor, words []string) {
	o := initiator.Options{Target: testTarget}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		if key == "cid" {
			o.CID = uint16(s.number(value))
		} else {
			o.Keys = append(o.Keys, initiator.Key{Name: key, Value: value})
		}
	}
	c, err := of.conn.JoinOver(targettest.Dial(s.server.Server, 1, targettest.Wire{}), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	s.enter(&actor{name: name, conn: c, cmdSN0: of.cmdSN0})
}

// listen writes down what all sessions got.
func (s *stage) listen() {
	for range 2 { // what one session does may concern those before it
		for _, a := range s.order {
			a.wire.Settle()
		}
		s.server.AwaitDirectory(s.t)
	}
	for _, a := range s.order {
		for a.wire.Buffered() > 0 && !a.violated {
			s.hear(a)
		}
		if !a.closed && a.wire.Ended() {
			a.closed = true
			fmt.Fprintf(&s.out, "%s< closed\n", a.name)
		}
	}
}

// hear takes one PDU, which the initiator judges.
func (s *stage) hear(a *actor) {
	exp := a.conn.ExpStatSN
	p, err := a.conn.Receive(0)
	if p != nil {
		fmt.Fprintf(&s.out, "%s< %s%s\n", a.name, mark(a.loses == 1, "lost: "), a.describe(p))
	}
	if a.loses--; a.loses == 0 {
		a.conn.ExpStatSN = exp
	}
	if err != nil {
		a.violated = true
		s.t.Errorf("%s: %v", a.name, err)
	}
}

// await lets a timer of the target go off.
func (s *stage) await(a *actor) {
	eventually.Holds(s.t, "PDU", func() bool { return a.wire.Buffered() > 0 || a.wire.Ended() })
}

// senders make the PDUs of an initiator.
var senders = map[string]func(*stage, *pdu.BHS, map[string]string){
	"SCSICommand":    (*stage).scsiCommand,
	"DataOut":        (*stage).dataOut,
	"NOPOut":         func(_ *stage, b *pdu.BHS, _ map[string]string) { b.SetOpcode(pdu.OpNOPOut) },
	"TaskManagement": (*stage).taskManagement,
	"Text":           (*stage).text,
	"Logout":         (*stage).logout,
	"SNACK":          (*stage).snack,
	"Login":          func(_ *stage, b *pdu.BHS, _ map[string]string) { b.SetOpcode(pdu.OpLoginRequest) },
	"Unknown":        func(_ *stage, b *pdu.BHS, _ map[string]string) { b.SetOpcode(0x1c) },
}

// send makes and sends a PDU. CmdSN is counted for what is numbered; cmdsn=
// overrides it.
func (s *stage) send(a *actor, name string, f map[string]string) {
	build := senders[name]
	if build == nil {
		s.t.Fatalf("PDU %q is not known", name)
	}
	var bhs pdu.BHS
	bhs.SetTTT(pdu.ReservedTag)
	build(s, &bhs, f)
	if text, ok := f["beg"]; ok && f["type"] == "status" {
		(*pdu.SNACKRequest)(&bhs).SetBegRun(pdu.SN(a.statSN0 + uint32(s.number(text))))
	}
	_, immediate := f["I"]
	_, final := f["F"]
	bhs.SetImmediate(immediate)
	bhs.SetFinal(final || name != "SCSICommand" && name != "DataOut" && name != "Text")
	bhs.SetITT(uint32(s.value(f, "itt", 0)))
	bhs.SetLUN(uint64(s.value(f, "lun", 0)) << 48)
	s.stamp(a, &bhs, name, f)
	p := &initiator.PDU{BHS: bhs, Data: s.data(f)}
	if err := a.conn.Send(p); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) value(f map[string]string, name string, otherwise int) int {
	if text, ok := f[name]; ok && text != "none" {
		return s.number(text)
	} else if ok {
		return pdu.ReservedTag
	}
	return otherwise
}

// stamp sets the sequence numbers, if the PDU has them.
func (s *stage) stamp(a *actor, bhs *pdu.BHS, name string, f map[string]string) {
	bhs.SetExpStatSN(pdu.SN(a.conn.ExpStatSN))
	if text, ok := f["expstatsn"]; ok {
		bhs.SetExpStatSN(pdu.SN(a.statSN0 + uint32(s.number(text))))
	}
	if name == "DataOut" || name == "SNACK" || name == "Unknown" {
		return
	}
	sn := a.conn.CmdSN
	if text, ok := f["cmdsn"]; ok {
		sn = a.cmdSN0 + uint32(s.number(text))
	}
	bhs.SetCmdSN(pdu.SN(sn))
	if !bhs.Immediate() && int32(sn-a.conn.CmdSN) >= 0 {
		a.conn.CmdSN = sn + 1
	}
}

// data expands the runs of data=, or takes text=key=value;key=value.
func (s *stage) data(f map[string]string) []byte {
	if text, ok := f["text"]; ok {
		return []byte(strings.ReplaceAll(text, ";", "\x00") + "\x00")
	}
	var out []byte
	for run := range strings.SplitSeq(f["data"], "+") {
		if n, letter, ok := strings.Cut(run, "*"); ok {
			out = append(out, bytes.Repeat([]byte(letter), s.number(n))...)
		}
	}
	return out
}

// opcodes of the CDBs that conversations use.
var opcodes = map[string]byte{"TUR": 0x00, "READ": 0x88, "WRITE": 0x8a, "WRITESAME": 0x93, "UNKNOWN": 0xff}

func (s *stage) scsiCommand(bhs *pdu.BHS, f map[string]string) {
	p := (*pdu.SCSICommand)(bhs).Init()
	_, r := f["R"]
	_, w := f["W"]
	p.SetRead(r)
	p.SetWrite(w)
	p.SetAttribute(pdu.TaskAttribute(s.value(f, "attr", 1)))
	p.SetExpectedDataTransferLength(uint32(s.value(f, "edtl", 0)))
	p.CDB()[0] = opcodes[f["cdb"]]
	if p.CDB()[0] != 0 {
		binary.BigEndian.PutUint64(p.CDB()[2:], uint64(s.value(f, "lba", 0)))
		binary.BigEndian.PutUint32(p.CDB()[10:], uint32(s.value(f, "blocks", 0)))
	}
}

func (s *stage) dataOut(bhs *pdu.BHS, f map[string]string) {
	p := (*pdu.DataOut)(bhs).Init()
	bhs.SetTTT(uint32(s.value(f, "ttt", pdu.ReservedTag)))
	p.SetDataSN(pdu.SN(s.value(f, "datasn", 0)))
	p.SetBufferOffset(uint32(s.value(f, "offset", 0)))
}

// functions of task management, by short names.
var functions = map[string]pdu.TaskManagementFunction{
	"AbortTask": pdu.FunctionAbortTask, "AbortTaskSet": pdu.FunctionAbortTaskSet, "ClearTaskSet": pdu.FunctionClearTaskSet,
	"LUReset": pdu.FunctionLogicalUnitReset, "WarmReset": pdu.FunctionTargetWarmReset, "ColdReset": pdu.FunctionTargetColdReset,
	"Reassign": pdu.FunctionTaskReassign,
}

func (s *stage) taskManagement(bhs *pdu.BHS, f map[string]string) {
	p := (*pdu.TaskManagementRequest)(bhs).Init()
	p.SetFunction(functions[f["function"]])
	p.SetReferencedTaskTag(uint32(s.value(f, "ref", pdu.ReservedTag)))
	p.SetExpDataSN(pdu.SN(s.value(f, "expdatasn", 0)))
}

// snackTypes are the types of SNACK by short names.
var snackTypes = map[string]pdu.SNACKType{"": pdu.SNACKDataR2T, "status": pdu.SNACKStatus, "ack": pdu.SNACKDataACK, "rdata": pdu.SNACKRData}

func (s *stage) snack(bhs *pdu.BHS, f map[string]string) {
	p := (*pdu.SNACKRequest)(bhs).Init()
	p.SetType(snackTypes[f["type"]])
	bhs.SetTTT(uint32(s.value(f, "ttt", pdu.ReservedTag)))
	p.SetBegRun(pdu.SN(s.value(f, "beg", 0)))
	p.SetRunLength(uint32(s.value(f, "run", 0)))
}

func (s *stage) text(bhs *pdu.BHS, f map[string]string) {
	p := (*pdu.TextRequest)(bhs).Init()
	_, more := f["C"]
	p.SetContinue(more)
	bhs.SetTTT(uint32(s.value(f, "ttt", pdu.ReservedTag)))
}

func (s *stage) logout(bhs *pdu.BHS, f map[string]string) {
	p := (*pdu.LogoutRequest)(bhs).Init()
	p.SetReason(pdu.LogoutReason(s.value(f, "reason", 0)))
	p.SetCID(uint16(s.value(f, "cid", 0)))
}

// describe writes a PDU of the target as a line.
func (a *actor) describe(p *initiator.PDU) string {
	bhs := (*pdu.BHS)(&p.BHS)
	words := describers[bhs.Opcode()](bhs, p.Data)
	if bhs.Opcode() != pdu.OpDataIn || (*pdu.DataIn)(bhs).HasStatus() {
		words = append(words, fmt.Sprintf("statsn=%d", uint32(bhs.StatSN())-a.statSN0))
	}
	words = append(words, fmt.Sprintf("expcmdsn=%d maxcmdsn=%d", uint32(bhs.ExpCmdSN())-a.cmdSN0, uint32(bhs.MaxCmdSN())-a.cmdSN0))
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// describers name a PDU and its own fields.
var describers = map[pdu.Opcode]func(*pdu.BHS, []byte) []string{
	pdu.OpDataIn:                 describeDataIn,
	pdu.OpR2T:                    describeR2T,
	pdu.OpSCSIResponse:           describeSCSIResponse,
	pdu.OpNOPIn:                  describeNOPIn,
	pdu.OpTextResponse:           describeTextResponse,
	pdu.OpReject:                 describeReject,
	pdu.OpLogoutResponse:         describeLogoutResponse,
	pdu.OpTaskManagementResponse: describeTaskManagementResponse,
	pdu.OpAsyncMessage:           describeAsyncMessage,
}

func mark(set bool, name string) string {
	if set {
		return name
	}
	return ""
}

func tag(name string, v uint32) string {
	if v == pdu.ReservedTag {
		return name + "=none"
	}
	return fmt.Sprintf("%s=%d", name, v)
}

func residualOf(over, under bool, count uint32) string {
	switch {
	case over:
		return fmt.Sprintf("O=%d", count)
	case under:
		return fmt.Sprintf("U=%d", count)
	}
	return ""
}

var statuses = map[uint8]string{0: "GOOD", 2: "CHECK_CONDITION", 8: "BUSY", 0x18: "RESERVATION_CONFLICT", 0x28: "TASK_SET_FULL", 0x40: "TASK_ABORTED"}

func describeDataIn(bhs *pdu.BHS, data []byte) []string {
	p := (*pdu.DataIn)(bhs)
	words := []string{"DataIn", tag("itt", bhs.ITT()), mark(bhs.Final(), "F"), mark(p.HasStatus(), "S"), mark(p.Acknowledge(), "A")}
	if p.HasStatus() {
		words = append(words, "status="+statuses[p.Status()], residualOf(p.Overflow(), p.Underflow(), p.ResidualCount()))
	}
	return append(words, fmt.Sprintf("datasn=%d offset=%d data=%s", uint32(p.DataSN()), p.BufferOffset(), runs(data)))
}

func describeR2T(bhs *pdu.BHS, _ []byte) []string {
	p := (*pdu.R2T)(bhs)
	return []string{"R2T", tag("itt", bhs.ITT()), tag("ttt", bhs.TTT()),
		fmt.Sprintf("r2tsn=%d offset=%d length=%d", uint32(p.R2TSN()), p.BufferOffset(), p.DesiredDataTransferLength())}
}

func describeSCSIResponse(bhs *pdu.BHS, data []byte) []string {
	p := (*pdu.SCSIResponse)(bhs)
	words := []string{"SCSIResponse", tag("itt", bhs.ITT()), "status=" + statuses[p.Status()]}
	if sense, ok := pdu.Sense(data); ok && len(sense) > 0 {
		r := initiator.Result{Sense: sense}
		key, asc, ascq := r.SenseKey()
		words = append(words, fmt.Sprintf("sense=%x/%02x/%02x", key, asc, ascq))
	}
	if p.SNACKTag() != 0 {
		words = append(words, tag("tag", p.SNACKTag()))
	}
	return append(words, residualOf(p.Overflow(), p.Underflow(), p.ResidualCount()), fmt.Sprintf("expdatasn=%d", uint32(p.ExpDataSN())))
}

func describeNOPIn(bhs *pdu.BHS, data []byte) []string {
	return []string{"NOPIn", tag("itt", bhs.ITT()), tag("ttt", bhs.TTT()), "data=" + runs(data)}
}

func describeTextResponse(bhs *pdu.BHS, data []byte) []string {
	p := (*pdu.TextResponse)(bhs)
	text := strings.TrimSuffix(strings.ReplaceAll(string(data), "\x00", ";"), ";")
	return []string{"TextResponse", tag("itt", bhs.ITT()), tag("ttt", bhs.TTT()), mark(bhs.Final(), "F"), mark(p.Continue(), "C"),
		"text=" + withoutPort(text)}
}

// withoutPort hides the number of the portal's port, which changes.
func withoutPort(text string) string {
	before, rest, ok := strings.Cut(text, "127.0.0.1:")
	if !ok {
		return text
	}
	return before + "127.0.0.1:port" + strings.TrimLeft(rest, "0123456789")
}

func describeReject(bhs *pdu.BHS, data []byte) []string {
	rejected := (*pdu.BHS)(data)
	return []string{"Reject", "reason=" + strings.ReplaceAll((*pdu.Reject)(bhs).Reason().String(), " ", "_"),
		"of=" + strings.ReplaceAll(rejected.Opcode().String(), " ", "_"), tag("itt", rejected.ITT())}
}

func describeLogoutResponse(bhs *pdu.BHS, _ []byte) []string {
	p := (*pdu.LogoutResponse)(bhs)
	words := []string{"LogoutResponse", tag("itt", bhs.ITT()), fmt.Sprintf("response=%d", p.Response())}
	if p.Time2Retain() > 0 {
		words = append(words, fmt.Sprintf("wait=%d retain=%d", p.Time2Wait(), p.Time2Retain()))
	}
	return words
}

func describeTaskManagementResponse(bhs *pdu.BHS, _ []byte) []string {
	return []string{"TaskManagementResponse", tag("itt", bhs.ITT()),
		"response=" + strings.ReplaceAll((*pdu.TaskManagementResponse)(bhs).Response().String(), " ", "_")}
}

func describeAsyncMessage(bhs *pdu.BHS, _ []byte) []string {
	p := (*pdu.AsyncMessage)(bhs)
	words := []string{"AsyncMessage", "event=" + strings.ReplaceAll(p.Event().String(), " ", "_")}
	if p.Event() == pdu.AsyncDropConnection {
		words = append(words, fmt.Sprintf("cid=%d wait=%d retain=%d", p.Parameter1(), p.Parameter2(), p.Parameter3()))
	}
	return words
}

// runs writes data as counted letters.
func runs(data []byte) string {
	var out []string
	for len(data) > 0 {
		n := 1
		for n < len(data) && data[n] == data[0] {
			n++
		}
		letter := string(rune(data[0]))
		if data[0] == 0 {
			letter = "0"
		}
		out = append(out, fmt.Sprintf("%d*%s", n, letter))
		data = data[n:]
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "+")
}
