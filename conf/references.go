package conf

import "slices"

// names are the objects of a section, and which of them others refer to.
type names struct {
	section string
	sorted  []string
	used    map[string]bool
	unshown bool // there are objects whose names are not shown
}

func namesOf[T any](section string, objects []T, name func(*T) string) *names {
	ns := &names{section: section, used: make(map[string]bool, len(objects))}
	for i := range objects {
		n := name(&objects[i])
		if isPlaceholder(n) {
			ns.unshown = true
			continue
		}
		ns.sorted = append(ns.sorted, n)
		ns.used[n] = false
	}
	slices.Sort(ns.sorted)
	return ns
}

// check looks up the name that is the value of a key, and marks it used.
func (ns *names) check(d *decoder, path, name string) {
	if name != "" && !ns.use(name) {
		d.fail(path, quote(name), ns.expected(d, name))
	}
}

// use marks the object of a name used. It is false without one, unless that may
// be an object whose name is not shown.
func (ns *names) use(name string) bool {
	_, ok := ns.used[name]
	if ok {
		ns.used[name] = true
	}
	return ok || ns.unshown
}

func (ns *names) expected(d *decoder, name string) string {
	switch {
	case len(ns.sorted) == 0:
		return "a name from " + ns.section + ", which is empty"
	case d.full(): // each search for what may be meant takes a look at all names
		return "a name from " + ns.section
	}
	return "a name from " + ns.section + ": " + suggestion(name, ns.listed())
}

// listed are the names that a message may list.
func (ns *names) listed() []string {
	if !isSecretive(ns.section) {
		return ns.sorted
	}
	return slices.DeleteFunc(slices.Clone(ns.sorted), func(name string) bool { return !quotable(name) })
}

// users are what refers to the objects of a section.
var users = map[string]string{
	"auth-groups":   "a target, an access rule or discovery.auth that names it",
	"portal-groups": "a target that names it",
	"qos.groups":    "a rule that names it",
	"volumes":       "a LUN of a target that has it",
}

// warnUnused tells of objects that nothing refers to.
func (ns *names) warnUnused(d *decoder) {
	for _, name := range ns.sorted {
		if !ns.used[name] {
			d.warn(ns.section+"."+name, "a definition that nothing uses", users[ns.section])
		}
	}
}
