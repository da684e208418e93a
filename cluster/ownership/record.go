package ownership

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
)

// version is that of the values that this package writes. Members of later versions are
// ignored; a value with a higher version is refused.
const version = 1

// Standing is how far the owner in a Record is.
type Standing string

// The standings.
const (
	Claiming Standing = "claiming" // fences earlier owners and opens the volume
	Owned    Standing = "owned"    // serves it
	Free     Standing = "free"     // has closed it: nobody owns it
)

// Record is the value of a volume's owner key (cluster.Keys.Owner).
type Record struct {
	Version     int       `json:"version"`
	Node        string    `json:"node"`
	Incarnation string    `json:"incarnation"`    // of the node: its process
	Epoch       uint64    `json:"epoch"`          // higher with each claim
	Since       time.Time `json:"since,omitzero"` // when Node claimed it, by its clock: for people alone
	Standing    Standing  `json:"standing"`
	// Instances are the addresses of the Ceph instances that may have the volume open: who
	// claims it next has to fence them.
	Instances []string `json:"instances,omitempty"`
	Cached    bool     `json:"cached,omitempty"`    // the owner may serve reads from a cache while its lease lasts
	Next      string   `json:"next,omitempty"`      // of a free one: the node that is to have it
	Failed    []string `json:"failed,omitempty"`    // incarnations that could not open it
	Size      int64    `json:"size,omitempty"`      // bytes, when it was opened last
	BlockSize int      `json:"blockSize,omitempty"` // bytes
	Image     string   `json:"image,omitempty"`     // as Config's
	Revision  int64    `json:"revision,omitempty"`  // as Config's, when it was opened last
}

// claimed is the instance by which the owner opens the volume: the last one.
func (r *Record) claimed() string {
	if n := len(r.Instances); n > 0 {
		return r.Instances[n-1]
	}
	return ""
}

// Request is the value of a volume's move key: to which node it is to go.
type Request struct {
	Version int    `json:"version"`
	To      string `json:"to"`
}

// Encode returns a value as it is stored.
func (r Record) Encode() []byte { r.Version = version; return encode(r) }

// Encode returns a value as it is stored.
func (r Request) Encode() []byte { r.Version = version; return encode(r) }

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("ownership: encode %T: %v", v, err)) // a fault of this package
	}
	return text
}

// Parse reads what Encode writes.
func Parse(value []byte) (r Record, err error) {
	if err = json.Unmarshal(value, &r); err != nil {
		return Record{}, fmt.Errorf("owner's record: %w", err)
	}
	switch {
	case r.Version != version:
		return Record{}, fmt.Errorf("owner's record: found version %d, expected %d", r.Version, version)
	case !slices.Contains([]Standing{Claiming, Owned, Free}, r.Standing):
		return Record{}, fmt.Errorf("owner's record: found standing %q, expected claiming, owned or free", r.Standing)
	}
	return r, nil
}

// ParseRequest reads what Request.Encode writes.
func ParseRequest(value []byte) (r Request, err error) {
	if err = json.Unmarshal(value, &r); err == nil && r.Version != version {
		err = fmt.Errorf("found version %d, expected %d", r.Version, version)
	}
	if err != nil {
		return Request{}, fmt.Errorf("request of a move: %w", err)
	}
	return r, nil
}

// Forgotten is the value of the key of that name (cluster.Keys.Forgotten): what has to be known of
// the owners' records that were removed, of whichever volumes. An image has a note of the epoch
// that it was open for last, and is not opened for an earlier one. A node that goes by an older
// configuration than those records may take another image for the volume.
type Forgotten struct {
	Version int `json:"version"`
	// Epoch is the highest that one of them had: new ones begin above it.
	Epoch uint64 `json:"epoch"`
	// Revision is that of the cluster's configuration which did not have the volume any more: a
	// node that knows a volume by an earlier one makes no new record.
	Revision int64 `json:"revision"`
	// Left has the instances that those records named, the latest last.
	Left []Left `json:"left,omitempty"`
}

// Left are the addresses of Ceph instances that may have an image open still of which no record is
// there any more: who makes a new one has to fence them.
type Left struct {
	Image     string   `json:"image"`
	Instances []string `json:"instances"`
}

// mostLeft bounds Forgotten.Left. Of what gives way Ceph alone knows: an owner of a lock that has
// died loses it after half a minute, and one that lives keeps it.
const mostLeft = 256

// leave notes the instances that may have an image open.
func (f *Forgotten) leave(image string, instances []string) {
	all, before := f.without(image), f.of(image)
	for _, one := range instances {
		before = append(without(before, one), one)
	}
	if len(before) > 0 && image != "" {
		all = append(all, Left{image, before})
	}
	f.Left = all[max(0, len(all)-mostLeft):]
}

// of are the instances that may have an image open.
func (f *Forgotten) of(image string) []string {
	if i := slices.IndexFunc(f.Left, func(l Left) bool { return l.Image == image }); i >= 0 {
		return f.Left[i].Instances
	}
	return nil
}

// without is what is left of other images.
func (f *Forgotten) without(image string) []Left {
	return slices.DeleteFunc(slices.Clone(f.Left), func(l Left) bool { return l.Image == image })
}

// Encode returns a value as it is stored.
func (f Forgotten) Encode() []byte { f.Version = version; return encode(f) }

// parseForgotten reads what Encode writes. Of what cannot be read it says that no node is to make
// a new record of a volume of the cluster's configuration.
func parseForgotten(value []byte) (f Forgotten, err error) {
	if err = json.Unmarshal(value, &f); err == nil && f.Version != version {
		err = fmt.Errorf("found version %d, expected %d", f.Version, version)
	}
	if err != nil {
		return Forgotten{Revision: math.MaxInt64}, fmt.Errorf("what is known of records that were removed: %w", err)
	}
	return f, nil
}

// without is a copy of all but one.
func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}
