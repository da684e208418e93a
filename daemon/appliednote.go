package daemon

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

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

	Members      []string      `json:",omitempty"`
	Map          string        `json:",omitempty"`
	Held         conf.Size     `json:",omitempty"`
	Window       time.Duration `json:",omitempty"`
	Excess       string        `json:",omitempty"`
	ExcessSize   conf.Size     `json:",omitempty"`
	ExcessWrites int           `json:",omitempty"`

	Ceph      string                 `json:",omitempty"`
	Image     string                 `json:",omitempty"`
	Owners    []string               `json:",omitempty"`
	Failback  conf.FailbackPolicy    `json:",omitempty"`
	Snapshots *conf.SnapshotSchedule `json:",omitempty"`
}

// noted is the form of a volume.
func noted(v conf.Volume) notedVolume {
	return notedVolume{
		Volume: v, NAA: notedNAA(v.NAA), Revision: v.Revision, Designators: v.Designators,
		Members: v.Members, Map: v.Map, Held: v.Held, Window: v.Window, Excess: v.Excess, ExcessSize: v.ExcessSize, ExcessWrites: v.ExcessWrites,
		Ceph: v.Ceph, Image: v.Image, Owners: v.Owners, Failback: v.Failback,
		Snapshots: v.Snapshots,
	}
}

// volume is what was noted.
func (n *notedVolume) volume() conf.Volume {
	v := n.Volume
	v.NAA, v.Revision, v.Designators = string(n.NAA), n.Revision, n.Designators
	v.Members, v.Map, v.Held, v.Window = n.Members, n.Map, n.Held, n.Window
	v.Excess, v.ExcessSize, v.ExcessWrites = n.Excess, n.ExcessSize, n.ExcessWrites
	v.Ceph, v.Image, v.Owners, v.Failback = n.Ceph, n.Image, n.Owners, n.Failback
	v.Snapshots = n.Snapshots
	return v
}

// notedNAA is an NAA identifier in hexadecimal digits. One of eight bytes, which earlier
// versions had alone, is noted as a number, and none as 0.
type notedNAA string

// MarshalJSON implements json.Marshaler.
func (n applied) MarshalJSON() ([]byte, error) {
	out := notedApplied{plainApplied: plainApplied(n)}
	for _, v := range n.Volumes {
		out.Volumes = append(out.Volumes, noted(v))
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
		n.Volumes = append(n.Volumes, v.volume())
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
