package server

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lunar/internal/places"
)

// maxRemembered bounds the addresses that are remembered of each kind.
const maxRemembered = 4096

// guessRate is how often an address may send a wrong token, and strangerRate how often one
// of which nothing is known may ask, or connect, which costs a handshake of TLS. What is
// more often waits, but no longer than mostWait.
var (
	guessRate    = places.Rate{Every: 250 * time.Millisecond}
	strangerRate = places.Rate{Burst: 64, Every: 50 * time.Millisecond}
)

const mostWait = 5 * time.Second

// admission is what is known of those who come over TCP. Its methods may be called by any
// number of goroutines.
type admission struct {
	mu       sync.Mutex
	known    []netip.Prefix                       // come before all others
	proofs   *simplelru.LRU[netip.Addr, struct{}] // addresses of those who have shown that they may ask
	guesses  *places.Buckets[netip.Addr]
	attempts *places.Buckets[netip.Addr]
}

func newAdmission() *admission {
	proofs, _ := simplelru.NewLRU[netip.Addr, struct{}](maxRemembered, nil) // fails for sizes below one alone
	return &admission{proofs: proofs, guesses: places.NewBuckets[netip.Addr](maxRemembered), attempts: places.NewBuckets[netip.Addr](maxRemembered)}
}

// knows are the networks whose clients come before all others.
func (a *admission) knows(networks []netip.Prefix) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = networks
}

// proves notes that somebody at an address may ask.
func (a *admission) proves(from netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proofs.Add(places.Host(from), struct{}{})
}

// holder is who a connection's place is counted for, before it has said anything.
func (a *admission) holder(from netip.Addr) places.Holder {
	from = from.Unmap().WithZone("")
	a.mu.Lock()
	defer a.mu.Unlock()
	class := places.Stranger
	switch {
	case slices.ContainsFunc(a.known, func(p netip.Prefix) bool { return p.Contains(from) }):
		class = places.Known
	case a.proofs.Contains(places.Host(from)):
		class = places.Proven
	}
	return places.Of(class, from)
}

// wait is how long an address waits that asks or connects once more and may not ask, or
// has guessed a token.
func (a *admission) wait(from netip.Addr, guessed bool) time.Duration {
	host, now := places.Host(from), time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if guessed {
		return min(mostWait, a.guesses.Delay(host, 1, guessRate, now))
	}
	return min(mostWait, a.attempts.Delay(host, 1, strangerRate, now))
}
