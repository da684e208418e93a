//go:build invariants

package invariants

// Enabled reports that the binary was built with the tag `invariants`.
const Enabled = true
