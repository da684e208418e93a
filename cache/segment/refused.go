package segment

import (
	"fmt"
	"strings"
)

// Reason says why a segment was refused.
type Reason uint8

// The reasons.
const (
	Unsafe   Reason = iota // not a file of this user alone
	Busy                   // another process has it
	Foreign                // not a segment
	Version                // a format of another version of the program
	Identity               // of another server
	Changed                // other geometry: sizes, partitions or layout of the index
	Damaged                // wrong checksums
)

var reasonNames = [...]string{"unsafe", "busy", "foreign", "version", "identity", "changed", "damaged"}

// String names the reason for metrics and status.
func (r Reason) String() string { return reasonNames[r] }

// advice is what the administrator can do, by reason.
var advice = [...]string{
	Unsafe:   "move it away, or give the cache another path",
	Busy:     "stop the other daemon, or wait until the kernel has ended what a killed one had under way, or give this one another path",
	Foreign:  "it is left untouched; give the cache another path, or remove the file if nobody needs it",
	Version:  "start the version that wrote it, with the configuration and state directory that it had, and stop it in order, so that it writes back what is dirty, then remove the file; to give the data up, remove it now, and check the volumes",
	Identity: "it is left untouched; give each server a path of its own",
	Changed:  "start once with the old settings, and the version of tgtd that used it last if that is another (tgtd serve -c FILE --state-dir DIR, with the configuration and state directory that it had), and stop it in order, so that what is dirty is written back: this version puts a new file in its place then; to give the data up, remove the file now, and check the volumes",
	Damaged:  "keep a copy if its data may be needed, then remove the file; volumes with unwritten data are to be checked or restored",
}

// Refused is the error for a segment that cannot be attached. The file has not
// been changed.
type Refused struct {
	Path     string
	Reason   Reason
	Found    string
	Expected string
	Dirty    int64 // bytes of unwritten data that it holds, -1 if that cannot be told

	WrittenBy string // build that used the segment last, empty if that cannot be told
	Build     string // of this process, empty if it did not say
}

// Error says what was found and expected, what would be lost, and what to do.
func (r *Refused) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "cache segment %s refused: found %s, expected %s; ", r.Path, r.Found, r.Expected)
	if r.WrittenBy != "" && r.Build != "" {
		fmt.Fprintf(&text, "version %q used it last, this is version %q; ", r.WrittenBy, r.Build)
	}
	switch {
	case r.Dirty > 0:
		fmt.Fprintf(&text, "it holds %d bytes of unwritten data; ", r.Dirty)
	case r.Dirty == 0 && r.Reason == Changed:
		return text.String() + "it holds no unwritten data: remove the file"
	}
	return text.String() + advice[r.Reason]
}

func refuse(reason Reason, expected, found string, args ...any) *Refused {
	return &Refused{Reason: reason, Expected: expected, Found: fmt.Sprintf(found, args...), Dirty: -1}
}

// between notes which versions meet.
func (r *Refused) between(c contents, o Options) *Refused {
	r.WrittenBy, r.Build = c.state.build, o.Build
	if r.WrittenBy == "" {
		r.WrittenBy = c.header.build
	}
	return r
}
