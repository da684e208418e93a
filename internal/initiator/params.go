package initiator

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Params is what the two sides agreed on; lengths are bytes.
type Params struct {
	HeaderDigest             bool // CRC32C
	DataDigest               bool // CRC32C
	MaxRecvDataSegmentLength int  // ours: the most that the target may send
	TargetMaxRecv            int  // the target's: the most that we may send
	MaxBurstLength           int
	FirstBurstLength         int
	InitialR2T               bool
	ImmediateData            bool
	MaxOutstandingR2T        int
	MaxConnections           int
	DefaultTime2Wait         int
	DefaultTime2Retain       int
	ErrorRecoveryLevel       int
	DataPDUInOrder           bool
	DataSequenceInOrder      bool
}

// defaultParams are the values of RFC 7143 section 13, in force during login
// and for every key that nobody named.
func defaultParams() Params {
	return Params{
		MaxRecvDataSegmentLength: 8192, TargetMaxRecv: 8192,
		MaxBurstLength: 262144, FirstBurstLength: 65536,
		InitialR2T: true, ImmediateData: true,
		MaxOutstandingR2T: 1, MaxConnections: 1,
		DefaultTime2Wait: 2, DefaultTime2Retain: 20,
		DataPDUInOrder: true, DataSequenceInOrder: true,
	}
}

// Key is one text key with its value.
type Key struct{ Name, Value string }

// Keys is an ordered list of text keys.
type Keys []Key

// Get returns the value of the first key of that name.
func (k Keys) Get(name string) (string, bool) {
	for _, key := range k {
		if key.Name == name {
			return key.Value, true
		}
	}
	return "", false
}

// with returns the list with a value replaced in place, or added at the end.
func (k Keys) with(key Key) Keys {
	for i := range k {
		if k[i].Name == key.Name {
			k[i].Value = key.Value
			return k
		}
	}
	return append(k, key)
}

// Text encodes the list as a data segment: name=value, each ended by a NUL.
func (k Keys) Text() []byte {
	var b bytes.Buffer
	for _, key := range k {
		b.WriteString(key.Name + "=" + key.Value + "\x00")
	}
	return b.Bytes()
}

// ParseKeys decodes a data segment of text keys.
func ParseKeys(text []byte) (Keys, error) {
	var keys Keys
	if len(text) > 0 && text[len(text)-1] != 0 {
		return nil, fmt.Errorf("text %q does not end with a NUL", tail(text))
	}
	for pair := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte{0}), []byte{0}) {
		if len(pair) == 0 {
			continue
		}
		name, value, ok := strings.Cut(string(pair), "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("text pair %q is not name=value", pair)
		}
		keys = append(keys, Key{name, value})
	}
	return keys, nil
}

func tail(b []byte) []byte { return b[max(0, len(b)-40):] }

// function is how a negotiated value results from offer and answer (RFC 7143
// section 6.2 and the "result function" lines of section 13).
type function byte

const (
	chooseOne   function = iota // from the offered list
	logicalOr                   // Yes when either says Yes
	logicalAnd                  // Yes when both say Yes
	minimum                     // the lower number
	maximum                     // the higher number
	declaration                 // each side states its own
)

// negotiable describes an operational key: its function, its legal range when
// numerical, and where the result goes.
type negotiable struct {
	function function
	low      int
	high     int
	flag     func(*Params) *bool
	number   func(*Params) *int
}

const maxLength = 1<<24 - 1

var negotiables = map[string]negotiable{
	"HeaderDigest":             {function: chooseOne, flag: func(p *Params) *bool { return &p.HeaderDigest }},
	"DataDigest":               {function: chooseOne, flag: func(p *Params) *bool { return &p.DataDigest }},
	"InitialR2T":               {function: logicalOr, flag: func(p *Params) *bool { return &p.InitialR2T }},
	"ImmediateData":            {function: logicalAnd, flag: func(p *Params) *bool { return &p.ImmediateData }},
	"DataPDUInOrder":           {function: logicalOr, flag: func(p *Params) *bool { return &p.DataPDUInOrder }},
	"DataSequenceInOrder":      {function: logicalOr, flag: func(p *Params) *bool { return &p.DataSequenceInOrder }},
	"MaxRecvDataSegmentLength": {declaration, 512, maxLength, nil, func(p *Params) *int { return &p.TargetMaxRecv }},
	"MaxBurstLength":           {minimum, 512, maxLength, nil, func(p *Params) *int { return &p.MaxBurstLength }},
	"FirstBurstLength":         {minimum, 512, maxLength, nil, func(p *Params) *int { return &p.FirstBurstLength }},
	"MaxOutstandingR2T":        {minimum, 1, 65535, nil, func(p *Params) *int { return &p.MaxOutstandingR2T }},
	"MaxConnections":           {minimum, 1, 65535, nil, func(p *Params) *int { return &p.MaxConnections }},
	"DefaultTime2Wait":         {maximum, 0, 3600, nil, func(p *Params) *int { return &p.DefaultTime2Wait }},
	"DefaultTime2Retain":       {minimum, 0, 3600, nil, func(p *Params) *int { return &p.DefaultTime2Retain }},
	"ErrorRecoveryLevel":       {minimum, 0, 2, nil, func(p *Params) *int { return &p.ErrorRecoveryLevel }},
}

// settle checks the target's answer to an offer and stores the result. offered
// is empty for a key that the target declares of its own accord.
func (p *Params) settle(name, offered, answer string) error {
	n, ok := negotiables[name]
	if !ok || answer == "Irrelevant" {
		return nil
	}
	if n.flag != nil {
		return n.settleChoice(p, name, offered, answer)
	}
	return n.settleNumber(p, name, offered, answer)
}

func (n negotiable) settleChoice(p *Params, name, offered, answer string) error {
	legal := []string{"Yes", "No"}
	switch {
	case n.function == chooseOne:
		legal = strings.Split(offered, ",")
	case n.function == logicalOr && offered == "Yes":
		legal = []string{"Yes"}
	case n.function == logicalAnd && offered == "No":
		legal = []string{"No"}
	}
	if !slices.Contains(legal, answer) {
		return fmt.Errorf("%s=%s answers the offer %s, expected one of %v", name, answer, offered, legal)
	}
	*n.flag(p) = answer == "Yes" || answer == "CRC32C"
	return nil
}

func (n negotiable) settleNumber(p *Params, name, offered, answer string) error {
	value, err := number(answer)
	if err != nil || value < n.low || value > n.high {
		return fmt.Errorf("%s=%s, expected a number from %d to %d", name, answer, n.low, n.high)
	}
	mine, err := number(offered)
	if err == nil && (n.function == minimum && value > mine || n.function == maximum && value < mine) {
		return fmt.Errorf("%s=%s is on the wrong side of the offer %s", name, answer, offered)
	}
	*n.number(p) = value
	return nil
}

// number parses a decimal or hexadecimal constant (RFC 7143 section 6.1).
func number(text string) (int, error) {
	value, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return 0, fmt.Errorf("numerical value %q: %w", text, err)
	}
	return int(value), nil
}
