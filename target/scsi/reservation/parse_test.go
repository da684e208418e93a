package reservation

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var (
	here   = Nexus{"iqn.h1,i,0x000000000001", "iqn.t", 1}
	around = &Surroundings{Ports: []uint16{1, 2}, MayPersist: true, Initiators: []string{
		here.Initiator, "iqn.h2,i,0x000000000002", "iqn.h2,i,0x000000000003", "iqn.h22,i,0x000000000004",
	}}
)

// outList is a parameter list of REGISTER with TransportIDs.
func outList(key, serviceKey uint64, flags byte, ids ...[]byte) []byte {
	list := binary.BigEndian.AppendUint64(nil, key)
	list = binary.BigEndian.AppendUint64(list, serviceKey)
	list = append(list, 0, 0, 0, 0, flags, 0, 0, 0)
	if all := slices.Concat(ids...); len(all) > 0 {
		list = binary.BigEndian.AppendUint32(list, uint32(len(all)))
		list = append(list, all...)
	}
	return list
}

func moveList(flags byte, port uint16, id []byte) []byte {
	list := outList(1, 2, 0)
	list[17] = flags
	binary.BigEndian.PutUint16(list[18:], port)
	binary.BigEndian.PutUint32(list[20:], uint32(len(id)))
	return append(list, id...)
}

func portID(name string) []byte { return AppendTransportID(nil, name) }

func deviceID(name string) []byte {
	id := AppendTransportID(nil, name)
	id[0] = formatDevice | protocolISCSI
	return id
}

func TestParse(t *testing.T) {
	two := "iqn.h2,i,0x000000000002"
	for name, tt := range map[string]struct {
		action Action
		list   []byte
		want   Request
	}{
		"register":  {Register, outList(5, 6, 1), Request{Key: 5, ServiceKey: 6, Persist: true}},
		"all ports": {Register, outList(5, 6, 4), Request{Key: 5, ServiceKey: 6, Ports: []uint16{1, 2}}},
		"ports": {Register, outList(0, 6, 8, portID(two), portID("IQN.h3,i,0xABC")), Request{
			ServiceKey: 6, Specified: true, Initiators: []string{two, "iqn.h3,i,0x000000000abc"},
		}},
		"itself and twice": {Register, outList(0, 6, 8, portID(here.Initiator), portID(two), portID(two)), Request{
			ServiceKey: 6, Specified: true, Initiators: []string{two},
		}},
		"device": {Register, outList(0, 6, 8, deviceID("iqn.h2")), Request{
			ServiceKey: 6, Specified: true, Initiators: []string{two, "iqn.h2,i,0x000000000003"},
		}},
		"flags of another action": {Preempt, outList(5, 6, 0xff), Request{Key: 5, ServiceKey: 6}},
		"move": {RegisterAndMove, moveList(3, 2, portID(two)), Request{
			Key: 1, ServiceKey: 2, Persist: true, Unregister: true, To: Nexus{two, "iqn.t", 2},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Request{Action: tt.action, From: here}
			tt.want.Action, tt.want.From = tt.action, here
			if refusal := got.Parse(tt.list, around); refusal != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%+v, %+v, expected %+v", got, refusal, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	length := Refusal{Reason: ListLength}
	bad := func(id []byte, at int, value byte) []byte { id[at] = value; return outList(0, 6, 8, id) }
	two := "iqn.h2,i,0x000000000002"
	for name, tt := range map[string]struct {
		action Action
		list   []byte
		around *Surroundings
		want   Refusal
	}{
		"empty":               {Register, nil, around, length},
		"long":                {Reserve, make([]byte, 28), around, length},
		"short":               {Reserve, make([]byte, 23), around, length},
		"no room":             {Register, outList(0, 6, 8), around, length},
		"cut":                 {Register, outList(0, 6, 8, portID(two))[:40], around, length},
		"protocol":            {Register, bad(portID(two), 0, formatPort), around, *invalidList(28, 3)},
		"format":              {Register, bad(portID(two), 0, 0x80|protocolISCSI), around, *invalidList(28, 7)},
		"odd length":          {Register, bad(portID(two), 3, 22), around, *invalidList(30, -1)},
		"small":               {Register, bad(portID(two), 3, 16), around, *invalidList(30, -1)},
		"beyond":              {Register, bad(portID(two), 3, 200), around, length},
		"no ISID":             {Register, outList(0, 6, 8, portID("iqn.h2")), around, *invalidList(32, -1)},
		"ISID":                {Register, outList(0, 6, 8, portID("iqn.h2,i,0x1000000000000")), around, *invalidList(32, -1)},
		"no name":             {Register, outList(0, 6, 8, portID("")), around, *invalidList(32, -1)},
		"APTPL":               {Register, outList(0, 6, 1), &Surroundings{}, *invalidList(20, 0)},
		"APTPL of a move":     {RegisterAndMove, moveList(1, 1, portID(two)), &Surroundings{Ports: []uint16{1}}, *invalidList(17, 0)},
		"port of a move":      {RegisterAndMove, moveList(0, 3, portID(two)), around, *invalidList(18, -1)},
		"device of a move":    {RegisterAndMove, moveList(0, 1, deviceID("iqn.h2")), around, *invalidList(24, 7)},
		"two of a move":       {RegisterAndMove, moveList(0, 1, append(portID(two), portID(two)...)), around, *invalidList(24, 7)},
		"nothing of a move":   {RegisterAndMove, moveList(0, 1, nil), around, length},
		"too many initiators": {Register, outList(0, 6, 8, slices.Repeat(portID(two), maxTransportIDs+1)), around, Refusal{Reason: TooMany}},
	} {
		t.Run(name, func(t *testing.T) {
			r := Request{Action: tt.action, From: here}
			if got := r.Parse(tt.list, tt.around); got == nil || *got != tt.want {
				t.Errorf("%+v, expected %+v", got, tt.want)
			}
		})
	}
}

// TestTransportIDs: what is appended is read back, whatever its length.
func TestTransportIDs(t *testing.T) {
	for n := range 220 {
		port := PortName("iqn."+strings.Repeat("x", n), uint64(n)<<40)
		data := AppendTransportID(nil, port)
		id, refusal := parseTransportID(data, 0)
		if refusal != nil || id.name != port || id.device || id.length != len(data) || len(data)%4 != 0 {
			t.Fatalf("%s: %+v, %+v of %d bytes", port, id, refusal, len(data))
		}
	}
}

// TestLongNames: registrations outlive sessions, so that names which no initiator can
// have must not be registered.
func TestLongNames(t *testing.T) {
	for n, refused := range map[int]bool{223: false, 224: true, 60000: true} {
		name := "iqn." + strings.Repeat("x", n-4)
		for _, id := range [][]byte{AppendTransportID(nil, PortName(name, 1)), deviceID(name)} {
			if _, refusal := parseTransportID(id, 0); (refusal != nil) != refused {
				t.Errorf("a name of %d bytes: %+v", n, refusal)
			}
		}
	}
}

// TestOtherPorts: ALL_TG_PT and SPEC_I_PT register as if each nexus had asked.
func TestOtherPorts(t *testing.T) {
	s := new(State)
	do := func(r Request) *Refusal {
		r.From = here
		change, refusal := s.Apply(&r)
		if refusal == nil {
			s = change.Next
		}
		return refusal
	}
	keys := func() string {
		var out []string
		for _, r := range s.Registrations() {
			out = append(out, fmt.Sprintf("%s/%d=%d", r.Initiator[4:6], r.Port, r.Key))
		}
		return strings.Join(out, " ")
	}
	expect := func(want string) {
		t.Helper()
		if keys() != want {
			t.Errorf("%s, expected %s", keys(), want)
		}
	}
	all := []uint16{1, 2}
	do(Request{Action: Register, ServiceKey: 7, Ports: all, Specified: true, Initiators: []string{"iqn.h2,i,0x000000000002"}})
	expect("h1/1=7 h1/2=7 h2/1=7 h2/2=7")
	if refusal := do(Request{Action: Register, Key: 7, ServiceKey: 8, Specified: true}); refusal == nil || *refusal != *invalidList(20, 3) {
		t.Errorf("SPEC_I_PT of a registered nexus: %+v", refusal)
	}
	do(Request{Action: Register, Key: 7, ServiceKey: 8})
	expect("h1/1=8 h1/2=7 h2/1=7 h2/2=7")
	if refusal := do(Request{Action: Register, Key: 8, ServiceKey: 9, Ports: all}); refusal == nil || refusal.Reason != Conflict {
		t.Errorf("another port has another key: %+v", refusal)
	}
	do(Request{Action: RegisterAndIgnoreExistingKey, ServiceKey: 9, Ports: all})
	expect("h1/1=9 h1/2=9 h2/1=7 h2/2=7")
	do(Request{Action: Register, Key: 9, Ports: all})
	expect("h2/1=7 h2/2=7")
	if refusal := do(Request{Action: Register, ServiceKey: 5, Specified: true, Initiators: []string{"iqn.h2,i,0x000000000002"}}); refusal == nil || refusal.Reason != Conflict {
		t.Errorf("an initiator port that is registered: %+v", refusal)
	}
	expect("h2/1=7 h2/2=7")
}

// TestRegistrationsAreShared: one initiator's TransportIDs leave room for others, each
// of whom gets something, also after a restart.
func TestRegistrationsAreShared(t *testing.T) {
	s := new(State)
	apply := func(holder string, r Request) *Refusal {
		r.Action, r.From, r.Holder, r.ServiceKey = Register, Nexus{holder, "t", 1}, holder, 1
		r.Persist = true
		change, refusal := s.Apply(&r)
		if refusal == nil {
			s = change.Next
		}
		return refusal
	}
	crowd := func(of string, n int) (r Request) {
		r.Specified = true
		for i := range n {
			r.Initiators = append(r.Initiators, fmt.Sprint(of, i))
		}
		return r
	}
	if refusal := apply("greedy", crowd("greedy", MaxRegistrations-1)); refusal == nil || refusal.Reason != TooMany || len(s.registrations) > 0 {
		t.Fatalf("%+v, and %d registrations of one who wants all", refusal, len(s.registrations))
	}
	for holder, n := range []int{MaxRegistrations / 2, MaxRegistrations / 4, MaxRegistrations/8 - 2} {
		name := fmt.Sprint("greedy", holder)
		if refusal := apply(name, crowd(name, n-1)); refusal != nil {
			t.Fatalf("%s: %+v", name, refusal)
		}
		if refusal := apply(name+"again", Request{}); refusal != nil {
			t.Fatalf("an own registration beside %d: %+v", len(s.registrations), refusal)
		}
	}
	text, err := s.Marshal()
	if err == nil {
		s, err = Unmarshal(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.registrations { // it unregisters its own, and asks for more
		if s.registrations[i].Initiator == "greedy0" {
			s.registrations[i].Initiator = "greedy0of before"
		}
	}
	if refusal := apply("greedy0", Request{}); refusal == nil || refusal.Reason != TooMany {
		t.Errorf("%+v after a restart", refusal)
	}
}

// TestRegistrationsAreBounded: one too many changes nothing.
func TestRegistrationsAreBounded(t *testing.T) {
	s := new(State)
	for i := range MaxRegistrations + 1 {
		change, refusal := s.Apply(&Request{Action: Register, From: Nexus{fmt.Sprint(i), "t", 1}, Holder: fmt.Sprint(i), ServiceKey: 1})
		if (refusal != nil) != (i == MaxRegistrations) {
			t.Fatalf("registration %d: %+v", i, refusal)
		}
		if refusal == nil {
			s = change.Next
		}
	}
}

// FuzzParse: no list crashes the parser, and what it takes can be applied.
func FuzzParse(f *testing.F) {
	f.Add(byte(0), outList(0, 6, 8, portID("iqn.h2,i,0x2"), deviceID("iqn.h2")))
	f.Add(byte(7), moveList(3, 2, portID("iqn.h2,i,0x2")))
	f.Add(byte(4), outList(5, 6, 0))
	f.Fuzz(func(t *testing.T, action byte, list []byte) {
		r := Request{Action: Action(action % 8), From: here, Type: WriteExclusive}
		if refusal := r.Parse(list, around); refusal != nil {
			return
		}
		s := &State{registrations: []Registration{{Nexus: here, Key: r.Key}}}
		if change, refusal := s.Apply(&r); refusal == nil && change.Next.find(Nexus{}) >= 0 {
			t.Errorf("a nexus without a name: %+v", change.Next)
		}
	})
}
