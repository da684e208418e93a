package initiator

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
)

// Options say how to log in. Zero values make the login of a usual initiator.
type Options struct {
	Initiator string // DefaultInitiator when empty
	Target    string // empty for a discovery session
	Alias     string
	ISID      [6]byte // DefaultISID when zero
	TSIH      uint16  // of the session to join or reinstate; 0 for a new one
	CID       uint16
	CmdSN     uint32 // of the first command; 1 when zero

	CHAP       *CHAP  // credentials
	AuthMethod string // the offer; "CHAP" with credentials, else "None"
	// SkipSecurity starts in the operational stage.
	SkipSecurity bool

	// HeaderDigest and DataDigest are offers such as "CRC32C,None"; "None"
	// when empty.
	HeaderDigest string
	DataDigest   string
	// Keys replaces values of DefaultKeys and appends further keys.
	Keys Keys
	// Bare offers only Keys and none of DefaultKeys.
	Bare bool
}

// DefaultInitiator is the initiator name of Options without one.
const DefaultInitiator = "iqn.2026-01.lunar:initiator"

// DefaultISID is of the random kind (RFC 7143 section 11.12.5).
var DefaultISID = [6]byte{0x80, 0, 0, 0, 0, 1}

// DefaultKeys are offered in the operational stage, in this order, apart from
// the digests that Options name. MaxRecvDataSegmentLength is declared.
func DefaultKeys() Keys {
	return Keys{
		{"HeaderDigest", "None"}, {"DataDigest", "None"},
		{"MaxRecvDataSegmentLength", "262144"},
		{"InitialR2T", "No"}, {"ImmediateData", "Yes"},
		{"MaxBurstLength", "262144"}, {"FirstBurstLength", "65536"},
		{"MaxOutstandingR2T", "1"}, {"MaxConnections", "1"},
		{"DefaultTime2Wait", "2"}, {"DefaultTime2Retain", "0"},
		{"ErrorRecoveryLevel", "0"},
		{"DataPDUInOrder", "Yes"}, {"DataSequenceInOrder", "Yes"},
	}
}

// discoveryKeys are those that mean something in a discovery session.
var discoveryKeys = []string{"HeaderDigest", "DataDigest", "MaxRecvDataSegmentLength",
	"DefaultTime2Wait", "DefaultTime2Retain", "ErrorRecoveryLevel"}

// LoginFailure is a login response with a status class other than success
// (RFC 7143 section 11.13.5).
type LoginFailure struct {
	Class, Detail byte
	Keys          Keys // TargetAddress of a redirection
}

// Error names class and detail.
func (f *LoginFailure) Error() string {
	return fmt.Sprintf("login refused with status %#02x%02x", f.Class, f.Detail)
}

// Identity is what the target declared about itself during login.
type Identity struct {
	TargetAlias          string
	TargetAddress        string
	TargetPortalGroupTag string
	Answers              Keys // every key that the target sent, in order
}

// Dial connects over TCP to host:port and logs in.
func Dial(ctx context.Context, address string, o Options) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := NewConn(nc)
	if err := c.Login(o); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Join logs a further connection in to the session of c (RFC 7143 section 6.3.2),
// over TCP to host:port. o names its CID, digests and whatever else is its own;
// keys of the session are not offered again. It may also replace a connection that
// has failed, by its CID.
func (c *Conn) Join(ctx context.Context, address string, o Options) (*Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	n, err := c.JoinOver(nc, o)
	if err != nil {
		nc.Close()
	}
	return n, err
}

// JoinOver is Join over a transport, which the caller closes when it fails.
func (c *Conn) JoinOver(rw io.ReadWriter, o Options) (*Conn, error) {
	n := NewConn(rw)
	n.Order, n.joins = c.Order, true
	n.Params = c.Params
	n.Params.HeaderDigest, n.Params.DataDigest = false, false
	n.Params.MaxRecvDataSegmentLength, n.Params.TargetMaxRecv = 8192, 8192
	o.ISID, o.TSIH, o.Bare = c.ISID, c.TSIH, true
	if o.HeaderDigest == "" {
		o.HeaderDigest = "None"
	}
	if o.DataDigest == "" {
		o.DataDigest = "None"
	}
	return n, n.Login(o)
}

// Stages of the login phase (CSG and NSG).
const (
	stageSecurity    = 0
	stageOperational = 1
	stageFull        = 3
)

// login is the state of one login phase.
type login struct {
	c       *Conn
	o       Options
	offered Keys
	settled map[string]bool
	replies Keys // to offers of the target's own
	itt     uint32
}

// Login runs the login phase to full feature. It returns *LoginFailure when the
// target refuses and *Violation when it breaks the rules; the caller closes.
func (c *Conn) Login(o Options) error {
	if o.Initiator == "" {
		o.Initiator = DefaultInitiator
	}
	if o.ISID == [6]byte{} {
		o.ISID = DefaultISID
	}
	if o.CmdSN == 0 {
		o.CmdSN = 1
	}
	c.ISID, c.TSIH, c.CID = o.ISID, o.TSIH, o.CID
	if !c.joins {
		c.CmdSN = o.CmdSN
	}
	l := &login{c: c, o: o, settled: map[string]bool{}, itt: c.NewITT()}
	if err := l.run(); err != nil {
		return err
	}
	c.loginPhase = false
	return nil
}

func (l *login) run() error {
	keys := l.names()
	if !l.o.SkipSecurity {
		if err := l.security(keys); err != nil {
			return err
		}
		keys = nil
	}
	return l.operational(keys)
}

// names are the declarations of the first request.
func (l *login) names() Keys {
	keys := Keys{{"InitiatorName", l.o.Initiator}}
	if l.o.Alias != "" {
		keys = append(keys, Key{"InitiatorAlias", l.o.Alias})
	}
	if l.o.Target == "" {
		return append(keys, Key{"SessionType", "Discovery"})
	}
	return append(keys, Key{"SessionType", "Normal"}, Key{"TargetName", l.o.Target})
}

func (l *login) security(keys Keys) error {
	method := l.o.AuthMethod
	switch {
	case method == "" && l.o.CHAP != nil:
		method = "CHAP"
	case method == "":
		method = "None"
	}
	// With None alone nothing is left to say in this stage.
	transit := method == "None"
	answer, moved, err := l.exchange(stageSecurity, stageOperational, transit, append(keys, Key{"AuthMethod", method}))
	if err != nil || moved {
		return err
	}
	chosen, _ := answer.Get("AuthMethod")
	switch {
	case chosen == "CHAP" && l.o.CHAP != nil:
		return l.chap()
	case chosen == "None":
		return l.transit(stageSecurity, stageOperational, nil)
	}
	return fmt.Errorf("AuthMethod=%q answers the offer %s", chosen, method)
}

func (l *login) chap() error {
	credentials := l.o.CHAP
	answer, _, err := l.exchange(stageSecurity, 0, false, Keys{{"CHAP_A", credentials.offer()}})
	if err != nil {
		return err
	}
	question, err := credentials.parseChallenge(answer)
	if err != nil {
		return err
	}
	response := credentials.response(question.algorithm, question.identifier, credentials.Secret, question.challenge)
	keys := Keys{{"CHAP_N", credentials.User}, {"CHAP_R", formatBinary(response)}}
	if credentials.MutualUser == "" {
		return l.transit(stageSecurity, stageOperational, keys)
	}
	return l.mutualCHAP(question, keys)
}

func (l *login) mutualCHAP(question chapChallenge, keys Keys) error {
	mine := question.reverse()
	keys = append(keys, Key{"CHAP_I", fmt.Sprint(mine.identifier)}, Key{"CHAP_C", formatBinary(mine.challenge)})
	answer, moved, err := l.exchange(stageSecurity, stageOperational, true, keys)
	if err != nil {
		return err
	}
	if err := l.o.CHAP.checkTarget(mine, answer); err != nil {
		return err
	}
	if !moved {
		return l.transit(stageSecurity, stageOperational, nil)
	}
	return nil
}

// transit exchanges until the target agrees to move on.
func (l *login) transit(stage, next byte, keys Keys) error {
	for range 8 {
		_, moved, err := l.exchange(stage, next, true, keys)
		if err != nil || moved {
			return err
		}
		keys, l.replies = l.replies, nil
	}
	return fmt.Errorf("target does not leave login stage %d", stage)
}

func (l *login) operational(first Keys) error {
	l.offered = l.offers()
	if err := l.transit(stageOperational, stageFull, append(first, l.offered...)); err != nil {
		return err
	}
	return l.complete()
}

func (l *login) offers() Keys {
	keys := DefaultKeys()
	if l.o.Bare {
		keys = nil
	}
	if l.o.Target == "" {
		keys = slices.DeleteFunc(keys, func(k Key) bool { return !slices.Contains(discoveryKeys, k.Name) })
	}
	for _, k := range (Keys{{"HeaderDigest", l.o.HeaderDigest}, {"DataDigest", l.o.DataDigest}}) {
		if k.Value != "" {
			keys = keys.with(k)
		}
	}
	for _, k := range l.o.Keys {
		keys = keys.with(k)
	}
	return keys
}

// complete checks that no offer stayed unanswered and takes our own
// declaration into force.
func (l *login) complete() error {
	for _, k := range l.offered {
		n, known := negotiables[k.Name]
		if known && n.function != declaration && !l.settled[k.Name] {
			return &Violation{Section: "6.2", Detail: fmt.Sprintf("offer %s=%s was not answered", k.Name, k.Value),
				BHS: [headerLength]byte{OpLoginResponse}}
		}
	}
	if mine, ok := l.offered.Get("MaxRecvDataSegmentLength"); ok {
		n, err := number(mine)
		if err != nil {
			return err
		}
		l.c.Params.MaxRecvDataSegmentLength = n
	}
	return nil
}

// exchange sends one request and returns the keys of the response, gathered
// over continuations, and whether the stage was left.
func (l *login) exchange(csg, nsg byte, transit bool, keys Keys) (Keys, bool, error) {
	flags := csg << 2
	if transit {
		flags |= FlagFinal | nsg
	}
	request := l.request(flags, keys.Text())
	var text []byte
	for {
		response, err := l.roundTrip(request)
		if err != nil {
			return nil, false, err
		}
		text = append(text, response.Data...)
		if !response.Has(FlagContinue) {
			return l.accept(response, text)
		}
		request = l.request(csg<<2, nil)
	}
}

func (l *login) request(flags byte, text []byte) *PDU {
	p := NewPDU(OpLoginRequest, flags, text)
	p.SetImmediate()
	copy(p.BHS[8:14], l.o.ISID[:])
	binary.BigEndian.PutUint16(p.BHS[14:], l.c.TSIH)
	p.SetU32(AtITT, l.itt)
	binary.BigEndian.PutUint16(p.BHS[20:], l.o.CID)
	p.SetU32(AtCmdSN, l.c.CmdSN)
	p.SetU32(AtExpStatSN, l.c.ExpStatSN)
	return p
}

func (l *login) roundTrip(request *PDU) (*PDU, error) {
	if err := l.c.Send(request); err != nil {
		return nil, err
	}
	response, err := l.c.Receive(0)
	if err != nil {
		return nil, err
	}
	if class := response.BHS[36]; class != 0 {
		keys, _ := ParseKeys(response.Data)
		return nil, &LoginFailure{Class: class, Detail: response.BHS[37], Keys: keys}
	}
	return response, l.judge(request, response)
}

// judge holds the rules that relate a login response to its request.
func (l *login) judge(request, p *PDU) error {
	sent, got := request.BHS[1], p.BHS[1]
	tsih := binary.BigEndian.Uint16(p.BHS[14:])
	switch {
	case p.ITT() != l.itt:
		return violation(p, "11.13", "initiator task tag %#08x, expected %#08x", p.ITT(), l.itt)
	case !bytes.Equal(p.BHS[8:14], l.o.ISID[:]):
		return violation(p, "11.13.6", "ISID %x, expected %x", p.BHS[8:14], l.o.ISID)
	case p.BHS[3] != 0 || p.BHS[2] != 0:
		return violation(p, "11.13.2", "version max %d active %d, only 0 exists", p.BHS[2], p.BHS[3])
	case got&0x0c != sent&0x0c:
		return violation(p, "11.13", "current stage %d, expected %d", got>>2&3, sent>>2&3)
	case got&FlagFinal != 0 && sent&FlagFinal == 0:
		return violation(p, "11.13.3", "T set in answer to a request without T")
	case got&FlagFinal != 0 && got&3 > sent&3:
		return violation(p, "11.13.4", "next stage %d beyond the requested %d", got&3, sent&3)
	case got&FlagFinal != 0 && got&FlagContinue != 0:
		return violation(p, "11.13.2", "T and C both set")
	case got&FlagFinal != 0 && got&3 == stageFull && tsih == 0:
		return violation(p, "11.13.3", "TSIH 0 in the final response")
	case l.o.TSIH != 0 && tsih != l.o.TSIH:
		return violation(p, "11.13.3", "TSIH %d, the request named %d", tsih, l.o.TSIH)
	}
	if got&FlagFinal != 0 && got&3 == stageFull {
		l.c.TSIH = tsih
	}
	return nil
}

// accept takes the keys of a complete answer into force.
func (l *login) accept(p *PDU, text []byte) (Keys, bool, error) {
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, false, violation(p, "6.1", "%v", err)
	}
	for _, k := range keys {
		if err := l.acceptKey(p, k); err != nil {
			return nil, false, err
		}
	}
	if p.Has(FlagFinal) && len(l.replies) > 0 {
		return nil, false, violation(p, "6.3", "T set with the offer %s of its own open", l.replies[0].Name)
	}
	return keys, p.Has(FlagFinal), nil
}

func (l *login) acceptKey(p *PDU, k Key) error {
	id := &l.c.Identity
	id.Answers = append(id.Answers, k)
	switch k.Name {
	case "TargetAlias":
		id.TargetAlias = k.Value
	case "TargetAddress":
		id.TargetAddress = k.Value
	case "TargetPortalGroupTag":
		id.TargetPortalGroupTag = k.Value
	}
	if k.Value == "NotUnderstood" && negotiables[k.Name].function != declaration {
		return violation(p, "6.2", "%s=NotUnderstood for a key of the RFC", k.Name)
	}
	return l.settle(p, k)
}

// settle takes an operational key into force. An offer of the target's own is
// answered with the value that it offers, a list with None.
func (l *login) settle(p *PDU, k Key) error {
	n, operational := negotiables[k.Name]
	if !operational {
		return nil
	}
	if l.settled[k.Name] {
		return violation(p, "6.2", "%s negotiated twice", k.Name)
	}
	l.settled[k.Name] = true
	offered, ok := l.offered.Get(k.Name)
	if !ok && n.function != declaration {
		if n.function == chooseOne {
			k.Value = "None"
		}
		offered = k.Value
		l.replies = append(l.replies, k)
	}
	if err := l.c.Params.settle(k.Name, offered, k.Value); err != nil {
		return violation(p, "6.2", "%v", err)
	}
	return nil
}
