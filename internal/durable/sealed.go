package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// A sealed file begins with a line that says of what kind it is, how many bytes
// follow, and what their CRC32C is. So a bit that flipped anywhere, an end that is
// missing and another kind of file are told from what was written.
//
//	lunar-file 1 KIND BYTES CRC32C
const sealMark = "lunar-file "

// ErrDamaged says that a sealed file is not as it was written.
var ErrDamaged = errors.New("found damage, expected contents that fit their checksum")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal returns payload as the contents of a sealed file. Kind has no white space.
func Seal(kind string, payload []byte) []byte {
	return append(sealOf(kind, payload), payload...)
}

func sealOf(kind string, payload []byte) []byte {
	return fmt.Appendf(nil, "%s1 %s %d %08x\n", sealMark, kind, len(payload), crc32.Checksum(payload, castagnoli))
}

// Unseal is the opposite of Seal. What never was a sealed file is returned as it
// is, and sealed is false: a reader of what older versions wrote must refuse
// everything else. An empty file is damaged.
func Unseal(kind string, contents []byte) (payload []byte, sealed bool, err error) {
	if len(contents) == 0 {
		return nil, false, fmt.Errorf("an empty file: %w", ErrDamaged)
	}
	if !bytes.HasPrefix(contents, []byte(sealMark)) {
		return contents, false, nil
	}
	end := bytes.IndexByte(contents, '\n') + 1
	if payload = contents[end:]; !bytes.Equal(contents[:end], sealOf(kind, payload)) {
		return nil, true, ErrDamaged
	}
	return payload, true, nil
}

// ReplaceSealed makes payload the contents of the sealed file at path, as Replace
// does.
func ReplaceSealed(path, kind string, payload []byte) error {
	return Replace(path, Seal(kind, payload))
}

// ReadSealed returns what Unseal says of the file at path; errors of a missing one
// are fs.ErrNotExist.
func ReadSealed(path, kind string) (payload []byte, sealed bool, err error) {
	contents, err := Read(path)
	if err != nil {
		return nil, false, err
	}
	return Unseal(kind, contents)
}

// SaveJSON makes v, as JSON, the contents of the sealed file at path.
func SaveJSON(path, kind string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return ReplaceSealed(path, kind, append(text, '\n'))
}

// LoadJSON reads what SaveJSON wrote to v, a pointer. Older versions wrote the JSON
// alone; then old is true, and the caller saves it anew.
func LoadJSON(path, kind string, v any) (old bool, err error) {
	text, sealed, err := ReadSealed(path, kind)
	if err != nil {
		return false, err
	}
	return !sealed, Strict(text, v)
}

// Strict decodes JSON to v, a pointer to an empty value, and refuses what no version up
// to this one writes: keys that are unknown, there twice or in other letters, values in
// another form, and anything that follows. A key that is missing keeps its zero value: the
// version that wrote the text did not know it; none wrote an object without keys. Errors are
// short enough for a log, whatever the text.
func Strict(text []byte, v any) error {
	if err := strict(text, v); err != nil {
		return &textError{err}
	}
	return nil
}

func strict(text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var expected any
	if err := decoder(again).Decode(&expected); err != nil {
		return err
	}
	if !contained(decoder(text), expected) {
		return fmt.Errorf("found %s, expected %s: %w", bytes.TrimSpace(text), again, ErrDamaged)
	}
	return nil
}

// textError is an error that repeats what was found in a text.
type textError struct{ err error }

// maxMessage is the greatest length of its message in bytes.
const maxMessage = 1 << 10

// Error leaves out the middle of a long message.
func (e *textError) Error() string {
	text := e.err.Error()
	if len(text) <= maxMessage {
		return text
	}
	const part = (maxMessage - len(gap)) / 2
	return strings.ToValidUTF8(text[:part], "") + gap + strings.ToValidUTF8(text[len(text)-part:], "")
}

const gap = " ... "

func (e *textError) Unwrap() error { return e.err }
