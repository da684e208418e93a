package reservation

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Surroundings is what a request may name besides the nexus that it comes by.
type Surroundings struct {
	// Ports are the relative target port identifiers of the target device.
	Ports []uint16
	// Initiators are the initiator ports that the logical unit knows.
	Initiators []string
	// MayPersist: APTPL is supported.
	MayPersist bool
}

// ListLength is the length of the parameter list of most service actions
// (SPC-4 clause 6.16.3), in bytes:
//
//	0-7   RESERVATION KEY
//	8-15  SERVICE ACTION RESERVATION KEY
//	20    SPEC_I_PT (bit 3), ALL_TG_PT (bit 2), APTPL (bit 0)
//	24-   with SPEC_I_PT: length of the TransportIDs (4 bytes) and these
//
// and of the fixed part of that of REGISTER AND MOVE (clause 6.16.4), where
//
//	17    UNREG (bit 1), APTPL (bit 0)
//	18-19 RELATIVE TARGET PORT IDENTIFIER
//	20-23 length of the TransportID, which follows
const listLength = 24

// maxTransportIDs bounds those of one list.
const maxTransportIDs = MaxRegistrations

// Parse fills in what the parameter list of the request's service action says.
// From, Action, Scope and Type are there.
func (r *Request) Parse(list []byte, around *Surroundings) *Refusal {
	if len(list) < listLength {
		return &Refusal{Reason: ListLength}
	}
	r.Key, r.ServiceKey = binary.BigEndian.Uint64(list), binary.BigEndian.Uint64(list[8:])
	if r.Action == RegisterAndMove {
		return r.parseMove(list, around)
	}
	flags := list[20]
	r.Specified = flags&0x08 != 0 && r.registers()
	if !r.Specified && len(list) != listLength {
		return &Refusal{Reason: ListLength}
	}
	if !r.registers() {
		return nil // the flags mean nothing then
	}
	r.Persist = flags&0x01 != 0
	if r.Persist && !around.MayPersist {
		return invalidList(20, 0)
	}
	if flags&0x04 != 0 {
		r.Ports = around.Ports
	}
	if r.Specified {
		return r.parseInitiators(list, around)
	}
	return nil
}

func (r *Request) registers() bool {
	return r.Action == Register || r.Action == RegisterAndIgnoreExistingKey
}

// parseInitiators reads the TransportIDs of SPEC_I_PT. One that names a device
// means all of its ports that the logical unit knows.
func (r *Request) parseInitiators(list []byte, around *Surroundings) *Refusal {
	const at = listLength + 4
	if len(list) < at || uint64(len(list)-at) != uint64(binary.BigEndian.Uint32(list[listLength:])) {
		return &Refusal{Reason: ListLength}
	}
	count := 0
	for rest := list[at:]; len(rest) > 0; count++ {
		id, refusal := parseTransportID(rest, len(list)-len(rest))
		switch {
		case refusal != nil:
			return refusal
		case count == maxTransportIDs:
			return &Refusal{Reason: TooMany}
		case !id.device:
			r.addInitiator(id.name)
		}
		for _, port := range around.Initiators {
			if id.device && strings.HasPrefix(port, id.name+portSeparator) {
				r.addInitiator(port)
			}
		}
		rest = rest[id.length:]
	}
	return nil
}

func (r *Request) addInitiator(port string) {
	if port != r.From.Initiator && !slices.Contains(r.Initiators, port) {
		r.Initiators = append(r.Initiators, port)
	}
}

// parseMove reads the list of REGISTER AND MOVE.
func (r *Request) parseMove(list []byte, around *Surroundings) *Refusal {
	if uint64(len(list)-listLength) != uint64(binary.BigEndian.Uint32(list[20:])) {
		return &Refusal{Reason: ListLength}
	}
	r.Unregister, r.Persist = list[17]&0x02 != 0, list[17]&0x01 != 0
	port := binary.BigEndian.Uint16(list[18:])
	switch {
	case r.Persist && !around.MayPersist:
		return invalidList(17, 0)
	case !slices.Contains(around.Ports, port):
		return invalidList(18, -1)
	}
	id, refusal := parseTransportID(list[listLength:], listLength)
	switch {
	case refusal != nil:
		return refusal
	case id.device, id.length != len(list)-listLength:
		return invalidList(listLength, 7)
	}
	r.To = Nexus{id.name, r.From.Target, port}
	return nil
}
