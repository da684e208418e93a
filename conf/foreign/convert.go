package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/conf"
)

// Formats are what Convert reads.
var Formats = []string{"lio", "tgt", "gotgt", "scst", "ctld", "spdk"}

var readers = map[string]func(File, Include) (*server, error){
	"lio": readLIO, "tgt": readTGT, "gotgt": readGotgt, "scst": readSCST, "ctld": readCTLD, "spdk": readSPDK,
}

// MaxFile is the longest text that Convert reads, in bytes.
const MaxFile = 16 << 20

// Converted is a configuration.
type Converted struct {
	YAML  []byte           // with the Notes as comments; it has secrets
	Notes []Note           // what could not be carried over
	Sizes map[string]int64 // of volumes with files or devices, where the text tells them
}

// Convert makes a configuration of a text of one of the Formats. include may be nil. An
// error has no word of the text but names of settings.
func Convert(format string, f File, include Include) (*Converted, error) {
	read, ok := readers[format]
	if !ok {
		return nil, fmt.Errorf("found the format %q, expected one of %s", format, strings.Join(Formats, ", "))
	}
	if len(f.Data) > MaxFile {
		return nil, fmt.Errorf("%s: found more than %v of text, expected at most that", f.Name, conf.Size(MaxFile))
	}
	s, err := read(f, include)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if len(s.volumes) == 0 && len(s.targets) == 0 && len(s.notes) == 0 {
		return nil, fmt.Errorf("%s: found neither a disk nor a target: it is no file of %s, or an empty one", f.Name, format)
	}
	b := build(s)
	text, err := b.accepted()
	if err == nil && len(b.to.Volumes) == 0 && len(b.to.Targets) == 0 {
		err = nothing(s.notes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	notes := slices.Compact(s.notes)
	return &Converted{append(heading(format, f.Name, notes), text...), notes, b.sizes}, nil
}

// nothing is the error of a text of which nothing is left.
func nothing(notes []Note) error {
	lines := []string{"nothing of it could be carried over:"}
	for _, n := range notes {
		lines = append(lines, n.String())
	}
	return errors.New(strings.Join(lines, "\n"))
}

// heading is the comment in front of a configuration.
func heading(format, name string, notes []Note) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Made of %s (%s) by lunar import. Look at it, then: tgtd check FILE\n", oneLine(name), format)
	if len(notes) > 0 {
		b.WriteString("#\n# What could not be carried over, or only in part:\n#\n")
	}
	for _, n := range notes {
		fmt.Fprintf(&b, "# - %s\n", oneLine(n.String()))
	}
	b.WriteString("\n")
	return b.Bytes()
}

// oneLine is a text in a comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd {
			return ' '
		}
		return r
	}, text)
}
