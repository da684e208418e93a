package reservation

// Type is the type of a persistent reservation (SPC-4 clause 6.15.3.4); zero:
// there is none.
type Type uint8

// The types.
const (
	WriteExclusive                 Type  = 1
	ExclusiveAccess                Type  = 3
	WriteExclusiveRegistrantsOnly  Type  = 5
	ExclusiveAccessRegistrantsOnly Type  = 6
	WriteExclusiveAllRegistrants   Type  = 7
	ExclusiveAccessAllRegistrants  Type  = 8
	maxType                              = ExclusiveAccessAllRegistrants
	scopeLogicalUnit               uint8 = 0
)

// kind is a row of the table of types.
type kind struct {
	name    string
	exclude Rights // what others may not
	members bool   // registered nexuses are no others
	shared  bool   // all registered nexuses hold it
}

var kinds = [maxType + 1]kind{
	WriteExclusive:                 {name: "write-exclusive", exclude: Write},
	ExclusiveAccess:                {name: "exclusive-access", exclude: Read | Write},
	WriteExclusiveRegistrantsOnly:  {name: "write-exclusive-registrants-only", exclude: Write, members: true},
	ExclusiveAccessRegistrantsOnly: {name: "exclusive-access-registrants-only", exclude: Read | Write, members: true},
	WriteExclusiveAllRegistrants:   {name: "write-exclusive-all-registrants", exclude: Write, members: true, shared: true},
	ExclusiveAccessAllRegistrants:  {name: "exclusive-access-all-registrants", exclude: Read | Write, members: true, shared: true},
}

// Valid reports whether there is such a type.
func (t Type) Valid() bool { return t <= maxType && kinds[t].name != "" }

// String is the type's name in SPC-4 with dashes; "none" for zero.
func (t Type) String() string {
	if !t.Valid() {
		return "none"
	}
	return kinds[t].name
}

// Shared reports whether all registered nexuses hold such a reservation.
func (t Type) Shared() bool { return kinds[t].shared }

// Rights are classes of commands that a reservation of another can keep a nexus
// from (SPC-4 table 65, SBC-3 table 13).
type Rights uint8

// The classes.
const (
	Read  Rights = 1 << iota // commands that conflict with exclusive access only, such as READ
	Write                    // commands that conflict with write exclusive, too, such as WRITE
	All   = Read | Write
)
