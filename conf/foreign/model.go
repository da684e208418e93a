package foreign

import (
	"net/netip"
	"strings"

	"lunar/conf"
)

// server is what a text says, whatever target it is of.
type server struct {
	volumes   []*volume
	targets   []*target
	discovery *auth // nil: everyone may ask
	depth     int   // the longest queue of a session that was asked for; 0: none
	recovery  int   // ErrorRecoveryLevel
	joined    int   // MaxConnections
	globs     bool  // names of initiators may have wildcards
	notes     []Note
}

// note adds a Note.
func (s *server) note(place, what, advice string) {
	s.notes = append(s.notes, Note{place, what, advice})
}

// volume is a disk. Its name is any text.
type volume struct {
	id          string // by which the text speaks of it
	place       string
	kind        conf.VolumeType
	path        string
	size        int64 // 0: of the file or device
	block       int   // 0: 512
	readOnly    bool
	removable   bool
	stable      bool // each write is stable when it is answered (WCE=0)
	serial      string
	vendor      string
	product     string
	revision    string
	designators [][]byte // of the logical unit, in their order; nil: any
}

// portals are where targets are reached.
type portals struct {
	tag  int // the portal group tag that initiators have seen; 0: any
	at   []portal
	home string // place
}

type portal struct {
	addr netip.AddrPort
	rdma bool
}

// target is a target. Its rules are in the order in which they are asked.
type target struct {
	name     string
	alias    string
	place    string
	portals  []*portals // none: all that there are
	rules    []*rule
	redirect string
}

// rule says what some initiators find. Nothing in either list is everyone.
type rule struct {
	place      string
	initiators []string
	networks   []netip.Prefix
	auth       *auth // nil: nothing is asked for
	luns       []lun
}

type lun struct {
	place    string
	number   int64
	volume   string // id
	readOnly bool
}

// auth is whom an initiator has to be.
type auth struct {
	place  string
	users  []user
	mutual user // without a name: none
}

type user struct{ name, secret string }

// isDevice reports whether a path is that of a device, as far as it tells.
func isDevice(path string) bool {
	return strings.HasPrefix(path, "/dev/") && !strings.HasPrefix(path, "/dev/shm/")
}
