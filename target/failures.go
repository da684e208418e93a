package target

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lunar/internal/places"
)

// Bounds of the failed logins that are remembered: hosts, logins of each, and bytes of each
// text. Whoever fails often pushes out only what is known of himself.
const (
	failedHosts   = 256
	failedPerHost = 8
	failedText    = 512
)

// Failure is a login that was refused, redirected or broken off. What the initiator has
// chosen may hold any characters.
type Failure struct {
	At              time.Time
	Local, Remote   netip.AddrPort
	Initiator, User string // that it claimed; may be empty
	Target          string // may be empty
	Reason          string // the true one, which the initiator may not have been told
}

// failures are the last ones, by host.
type failures struct {
	mu    sync.Mutex
	hosts *simplelru.LRU[netip.Addr, []Failure]
}

func newFailures() *failures {
	hosts, _ := simplelru.NewLRU[netip.Addr, []Failure](failedHosts, nil) // fails for sizes below one alone
	return &failures{hosts: hosts}
}

func (f *failures) note(one Failure) {
	one.Initiator = strings.ToLower(one.Initiator)
	for _, text := range []*string{&one.Initiator, &one.User, &one.Target, &one.Reason} {
		*text = strings.Clone((*text)[:min(len(*text), failedText)]) // without the rest of the PDU that it may be a part of
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	host := places.Host(one.Remote.Addr())
	of, _ := f.hosts.Get(host)
	if len(of) == failedPerHost {
		of = slices.Delete(of, 0, 1)
	}
	f.hosts.Add(host, append(of, one))
}

// Failures returns the last failed logins of an initiator name, the newest first. They are
// few, and those of long ago are forgotten.
func (s *Server) Failures(initiator string) (out []Failure) {
	initiator = strings.ToLower(initiator)
	f := s.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, of := range f.hosts.Values() {
		for _, one := range of {
			if one.Initiator == initiator {
				out = append(out, one)
			}
		}
	}
	slices.SortFunc(out, func(a, b Failure) int { return b.At.Compare(a.At) })
	return out
}
