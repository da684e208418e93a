package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxDepth is how deep the parts of a text may lie within each other.
const maxDepth = 32

// maxItems is how many parts a text may have.
const maxItems = 1 << 19

var (
	errDepth = fmt.Errorf("found parts that lie more than %d deep within each other, expected less", maxDepth)
	errMany  = fmt.Errorf("found more than %d parts, expected fewer", maxItems)
)

// jsonReader reads a document into items.
type jsonReader struct {
	*json.Decoder
	items int
}

// parseJSON reads a document.
func parseJSON(data []byte) (*item, error) {
	d := &jsonReader{Decoder: json.NewDecoder(bytes.NewReader(data))}
	d.UseNumber()
	root := &item{used: true}
	if err := d.value(root, 0); err != nil {
		return nil, jsonError(data, d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("line %d: found more behind the document, expected its end", lineAt(data, d.InputOffset()))
	}
	return root, nil
}

// jsonError says where a document is broken. What the decoder says may quote it.
func jsonError(data []byte, at int64, err error) error {
	if errors.Is(err, errDepth) || errors.Is(err, errMany) {
		return err
	}
	return fmt.Errorf("line %d: found text that is no JSON", lineAt(data, at))
}

func lineAt(data []byte, at int64) int {
	return 1 + bytes.Count(data[:min(int64(len(data)), at)], []byte("\n"))
}

// value reads one value.
func (d *jsonReader) value(i *item, depth int) error {
	if d.items++; depth > maxDepth {
		return errDepth
	} else if d.items > maxItems {
		return errMany
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return d.object(i, depth)
		}
		return d.list(i, depth)
	case nil:
	default:
		i.args = []string{strings.ReplaceAll(fmt.Sprint(v), "\x00", "")}
	}
	return nil
}

func (d *jsonReader) object(i *item, depth int) error {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return errors.New("no key")
		}
		kid := &item{key: name, place: within(i.place, shownPlace(name))}
		if err := d.value(kid, depth+1); err != nil {
			return err
		}
		i.kids = append(i.kids, kid)
	}
	_, err := d.Token()
	return err
}

func (d *jsonReader) list(i *item, depth int) error {
	for n := 0; d.More(); n++ {
		kid := &item{place: fmt.Sprintf("%s[%d]", i.place, n)}
		if err := d.value(kid, depth+1); err != nil {
			return err
		}
		i.kids = append(i.kids, kid)
	}
	_, err := d.Token()
	return err
}

func within(above, key string) string {
	if above == "" {
		return key
	}
	return above + "." + key
}

// shownPlace is a key of an object in a place: names of targets are told, too.
func shownPlace(key string) string {
	if shown := shownKey(key); shown == key {
		return key
	}
	if strings.HasPrefix(strings.ToLower(key), "iqn.") && len(key) < 224 && !strings.ContainsAny(key, "\n\r") {
		return key
	}
	return "?"
}
