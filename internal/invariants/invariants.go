// Package invariants holds the switch for checks that are too dear for the
// data path of a production build. Build with `-tags invariants` to have them.
package invariants

// Assert panics with text when ok is false and Enabled is true; otherwise it
// does nothing. Its arguments are evaluated in every build, so a condition that
// costs something belongs under `if invariants.Enabled`.
func Assert(ok bool, text string) {
	if Enabled && !ok {
		panic("invariant violated: " + text)
	}
}
