package rbd

import (
	"fmt"
	"slices"
	"strings"
)

// OwnerNote is the name of the metadata by which an image has who serves it.
const OwnerNote = "lunar-owner"

// EpochNote is the name of the metadata by which an image has the last epoch that it was open
// for. It stays.
const EpochNote = "lunar-epoch"

// epochOfNote is the name of the metadata by which an image has of which one EpochNote is, by its
// ID: a clone or copy has the notes of what it was made of, and nobody had it open.
const epochOfNote = "lunar-epoch-of"

// owned is what is noted with an image: which server has it open, and by which instance.
// It is removed when the image is closed in order.
type owned struct{ server, instance string }

func (o owned) String() string { return o.server + " " + o.instance }

func parseOwned(text string) (o owned) {
	o.server, o.instance, _ = strings.Cut(text, " ")
	return o
}

// scene is what a server finds that wants an image for itself.
type scene struct {
	owner      string   // address of the instance with the lock; empty: none
	watchers   []string // addresses of those that are alive
	noted      owned
	epoch      string   // the last claim by which the image was open; empty: it is nobody's to ask
	server     string   // who asks; one process at a time has this identity
	self       string   // address of the instance by which it asks
	superseded []string // addresses of instances that have lost the image to it
}

// verdict is what may be done about the lock.
type verdict uint8

const (
	refuse  verdict = iota
	acquire         // it is nobody's
	seize           // its owner is dead: it is fenced first
)

// crashed reports whether the server's last process had the image open when it ended.
func (s *scene) crashed() bool { return s.noted.server == s.server && s.noted.instance != "" }

// kept reports whether the lock is still that process's: nobody else can have written.
func (s *scene) kept() bool { return s.crashed() && sameInstance(s.noted.instance, s.owner) }

// given reports whether the lock is that of an instance which has lost the image to the server
// that asks.
func (s *scene) given() bool {
	return slices.ContainsFunc(s.superseded, func(a string) bool { return sameInstance(a, s.owner) })
}

// judge decides whether the lock may be had. An owner that is alive keeps it, whoever it
// is, unless it gives it up: two servers would take it from each other without end. That of this server's last
// process is dead, although the cluster takes it to be alive for half a minute.
func (s *scene) judge() (verdict, error) {
	switch {
	case s.owner == "":
		return acquire, nil
	case sameInstance(s.owner, s.self): // to fence it would end all volumes of this server
		return refuse, fmt.Errorf("this server has it open already at %s, or has not ended an earlier use of it", s.owner)
	case s.kept(), s.given():
		return seize, nil
	case slices.ContainsFunc(s.watchers, func(w string) bool { return sameInstance(w, s.owner) }):
		who := "another client"
		if sameInstance(s.noted.instance, s.owner) {
			who = "the Lunar server " + s.noted.server
		}
		return refuse, fmt.Errorf("%s has it open at %s, and its exclusive lock: end that use first. An owner that died is given up by the cluster after 30 s", who, s.owner)
	}
	return seize, nil
}

// sameInstance compares addresses, which some functions of Ceph write with the version of
// their protocol.
func sameInstance(a, b string) bool { return a != "" && b != "" && bare(a) == bare(b) }

func bare(address string) string {
	for _, version := range []string{"v1:", "v2:", "any:"} {
		address = strings.TrimPrefix(address, version)
	}
	return address
}
