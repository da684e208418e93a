package daemon

import (
	"encoding/json"
	"fmt"
	"strconv"

	"lunar/conf"
)

// plainApplied is applied without a form of its own.
type plainApplied applied

// notedApplied is the form of applied.json.
type notedApplied struct {
	plainApplied
	Volumes []notedVolume
}

// notedVolume is a volume as earlier versions noted it. They take no key that they do not
// know, so what they lack is there only if it is used.
type notedVolume struct {
	conf.Volume
	NAA         notedNAA
	Revision    string   `json:",omitempty"`
	Designators []string `json:",omitempty"`
}

// notedNAA is an NAA identifier in hexadecimal digits. One of eight bytes, which earlier
// versions had alone, is noted as a number, and none as 0.
type notedNAA string

// MarshalJSON implements json.Marshaler.
func (n applied) MarshalJSON() ([]byte, error) {
	out := notedApplied{plainApplied: plainApplied(n)}
	for _, v := range n.Volumes {
		out.Volumes = append(out.Volumes, notedVolume{v, notedNAA(v.NAA), v.Revision, v.Designators})
	}
	return json.Marshal(&out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *applied) UnmarshalJSON(text []byte) error {
	var in notedApplied
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	*n = applied(in.plainApplied)
	for _, v := range in.Volumes {
		v.Volume.NAA, v.Volume.Revision, v.Volume.Designators = string(v.NAA), v.Revision, v.Designators
		n.Volumes = append(n.Volumes, v.Volume)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n notedNAA) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("0"), nil
	}
	if number, err := strconv.ParseUint(string(n), 16, 64); err == nil {
		return strconv.AppendUint(nil, number, 10), nil
	}
	return json.Marshal(string(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *notedNAA) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(n))
	}
	number, err := strconv.ParseUint(string(text), 10, 64)
	if *n = ""; number != 0 {
		*n = notedNAA(fmt.Sprintf("%016x", number))
	}
	return err
}
