package control

import "fmt"

// Role is what somebody may do. Each includes those before it.
type Role int

// The roles.
const (
	NoRole  Role = iota // nothing
	Read                // ask for everything, which never has secrets
	Operate             // what a running server undoes again: sessions, drains, rates, access states
	Admin               // everything: configuration, data and reservations
)

var roleNames = [...]string{"none", "read", "operate", "admin"}

// String is the role's name.
func (r Role) String() string { return roleNames[r] }

// ParseRole reads the name of a role that allows something.
func ParseRole(name string) (Role, error) {
	for r := Read; r <= Admin; r++ {
		if roleNames[r] == name {
			return r, nil
		}
	}
	return NoRole, fmt.Errorf("found role %q, expected read, operate or admin", name)
}

// Roles are those that allow something.
func Roles() []Role { return []Role{Read, Operate, Admin} }
