package foreign

import (
	"slices"
	"strconv"
	"strings"
)

// item is a part of a text: a key with words behind it, and what it has in itself.
type item struct {
	key   string // empty for an element of a list
	args  []string
	kids  []*item
	place string // for people
	used  bool   // it has a place in the configuration, or is known to need none
}

// one marks and returns the last item of a key, as the last of several settings
// counts; nil: there is none.
func (i *item) one(key string) (found *item) {
	for _, k := range i.all(key) {
		found = k
	}
	return found
}

// all marks and returns the items of a key.
func (i *item) all(key string) (found []*item) {
	if i == nil {
		return nil
	}
	for _, k := range i.kids {
		if strings.EqualFold(k.key, key) {
			k.used = true
			found = append(found, k)
		}
	}
	return found
}

// list marks and returns the elements of a list.
func (i *item) list(key string) (found []*item) {
	of := i.one(key)
	if of == nil {
		return nil
	}
	for _, k := range of.kids {
		k.used = true
	}
	return of.kids
}

// arg is a word behind the key; empty: there is none.
func (i *item) arg(n int) string {
	if i == nil || n >= len(i.args) {
		return ""
	}
	return i.args[n]
}

// text is all that is behind a key.
func (i *item) text(key string) string {
	if found := i.one(key); found != nil {
		return strings.Join(found.args, " ")
	}
	return ""
}

// number is what is behind a key; ok: it is a number.
func (i *item) number(key string) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(i.text(key)), 0, 64)
	return n, err == nil
}

// flag is what is behind a key; otherwise if it is not there or no truth value.
func (i *item) flag(key string, otherwise bool) bool {
	switch strings.ToLower(i.text(key)) {
	case "1", "true", "yes", "on", "y", "enabled":
		return true
	case "0", "false", "no", "off", "n", "disabled":
		return false
	}
	return otherwise
}

// at is where the item of a key is, or where it would be.
func (i *item) at(key string) string {
	for _, k := range i.kids {
		if strings.EqualFold(k.key, key) {
			return k.place
		}
	}
	return i.place
}

// Note is something that could not be carried over, or only in part.
type Note struct {
	Place  string // in the file
	What   string // without secrets
	Advice string // what an administrator can do; empty: nothing needs to be done
}

// String is the Note on one line.
func (n Note) String() string {
	text := n.What
	if n.Place != "" {
		text = n.Place + ": " + text
	}
	if n.Advice != "" {
		text += "; " + n.Advice
	}
	return text
}

// knowledge is what there is to know of keys that a reader has not used.
type knowledge struct {
	quiet  []string          // they mean nothing to initiators; lower case
	usual  map[string]string // they mean nothing if they have this value; lower case
	advice map[string]string // what to do; lower case
}

// leftovers tells of the items that nothing was made of.
func (i *item) leftovers(k *knowledge) (notes []Note) {
	for _, kid := range i.kids {
		key := strings.ToLower(kid.key)
		value, isUsual := k.usual[key]
		switch {
		case kid.used:
			notes = append(notes, kid.leftovers(k)...)
		case slices.Contains(k.quiet, key), isUsual && strings.EqualFold(strings.Join(kid.args, " "), value), kid.empty():
		default:
			notes = append(notes, Note{kid.place, shownKey(kid.key) + " was not carried over", k.advice[key]})
		}
	}
	return notes
}

// empty reports whether there is nothing in an item.
func (i *item) empty() bool {
	return len(i.kids) == 0 && i.key != "" && !slices.ContainsFunc(i.args, func(a string) bool { return a != "" })
}

// shownKey is a key in a message: what does not look like one might be a secret.
func shownKey(key string) string {
	word := func(r rune) bool {
		return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	if key == "" || len(key) > 40 || strings.ContainsFunc(key, func(r rune) bool { return !word(r) }) {
		return "something that is no known key"
	}
	return key
}
