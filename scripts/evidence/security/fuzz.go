package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/notes"
)

// grammar is a kind of input that is drawn by its rules, and that breaks each of them now
// and then. What is drawn depends on the seed alone.
type grammar struct {
	name string
	how  string
	// open makes what sends the inputs of one fuzzer.
	open func(s *scene) sender
}

// sender sends one input, drawn by random, and returns the signature of the answer: lines,
// each of which is a case for the server.
type sender func(ctx context.Context, random *rand.Rand) (signature string, err error)

var grammars = []grammar{
	{"fuzz-login", "Login requests: stages, flags, versions, ISIDs, TSIHs, keys of RFC 7143 with values of their types, of others' and of none, CHAP, continuation", fuzzLogin},
	{"fuzz-session", "PDUs of every opcode within a session of any negotiated parameters: tags, offsets, lengths, serial numbers, AHS, digests, SNACKs, task management, several connections", fuzzSession},
	{"fuzz-scsi", "CDBs by the usage masks that the server reports (REPORT SUPPORTED OPERATION CODES), and parameter lists of each", fuzzSCSI},
	{"fuzz-api", "Requests by the OpenAPI description, to the control socket and over TLS with a token of each role: objects with ETags, changes, jobs, events, traces, freezes; no answer has a secret, and no reader changes anything", fuzzAPI},
	{"fuzz-config", "Configurations: keys, values, nesting, anchors, for `tgtd check`", fuzzConfig},
	{"fuzz-files", "State directories and segments after `kill -9`, words and files of which were changed, for the next start", fuzzFiles},
}

// corpusPath is where they are, from the root of the repository.
const corpusPath = "scripts/evidence/security/testdata/corpus.json"

// corpusFile are seeds of inputs that brought answers of different signatures, by
// grammar and signature. They come first each time.
//
//go:embed testdata/corpus.json
var corpusFile []byte

func corpusOf(name string) map[string]uint64 {
	all := map[string]map[string]uint64{}
	if err := json.Unmarshal(corpusFile, &all); err != nil {
		panic(err) // of this repository
	}
	return all[name]
}

// crashed is in the signature of what must not happen.
const crashed = "CRASH"

// Names of what fuzzing counts.
const (
	inputs     = "inputs"
	signatures = "kinds of answers"
	leftOver   = "sessions, connections and goroutines left"
)

// fuzzing is a grammar as an attack.
func fuzzing(g grammar) attack {
	return attack{
		name: g.name, item: "fuzzing", how: g.how, fuzzes: true,
		bounds: []bound{atLeast(inputs, 1), atMost(leftOver, 0)},
		run: func(ctx context.Context, s *scene) (figures, error) {
			t := newTally()
			found := &corpus{seeds: map[string]uint64{}}
			known := corpusOf(g.name)
			first := make([]uint64, 0, len(known))
			for _, seed := range known {
				first = append(first, seed)
			}
			slices.Sort(first)
			next := newSeeds(first, s.Seed)
			send := make([]sender, fuzzers)
			for i := range send {
				send[i] = g.open(s)
			}
			crowd(ctx, fuzzers, func(i int) error {
				seed := next()
				signature, err := send[i](ctx, rand.New(rand.NewPCG(seed, 1)))
				if ctx.Err() == nil && err == nil {
					t.add(inputs, 1)
					found.note(signature, seed)
				}
				return err
			})
			t.add(signatures, float64(len(found.seeds)))
			s.Found = found.seeds
			return t.figures(), nil
		},
	}
}

// fuzzers is how many inputs are under way at a time.
const fuzzers = 4

// newSeeds returns those of the corpus once, and then new ones.
func newSeeds(first []uint64, from uint64) func() uint64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(from, 2))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		if len(first) == 0 {
			return random.Uint64()
		}
		seed := first[0]
		first = first[1:]
		return seed
	}
}

// keep adds seeds to the corpus in the tree, if this is run from its root.
func keep(name string, seeds map[string]uint64) error {
	if _, err := os.Stat(corpusPath); err != nil || len(seeds) == 0 {
		return nil
	}
	all, err := notes.Read[map[string]uint64](corpusPath)
	if err != nil {
		return err
	}
	if all[name] == nil {
		all[name] = map[string]uint64{}
	}
	for signature, seed := range seeds {
		if _, ok := all[name][signature]; !ok {
			all[name][signature] = seed
		}
	}
	return notes.Write(corpusPath, all)
}

// corpus is what was found.
type corpus struct {
	mu    sync.Mutex
	seeds map[string]uint64
}

// note keeps the first seed of each line of a signature.
func (c *corpus) note(signature string, seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for line := range strings.SplitSeq(signature, "\n") {
		line = strings.TrimSpace(line)
		if _, ok := c.seeds[line]; !ok {
			c.seeds[line] = seed
		}
	}
}

// pick draws one of some.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// odds reports true once in n times.
func odds(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// number draws one at which something may change.
func number(r *rand.Rand) uint64 {
	n := uint64(1) << r.IntN(64)
	switch r.IntN(6) {
	case 0:
		return uint64(r.IntN(4))
	case 1:
		return n - 1
	case 2:
		return n
	case 3:
		return n + 1
	case 4:
		return ^uint64(0) - uint64(r.IntN(4))
	}
	return r.Uint64()
}

// noise are so many bytes of chance.
func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// ended says how a connection ended, for signatures: not in which words.
func ended(err error) string {
	var violated *initiator.Violation
	switch {
	case err == nil:
		return "goes on"
	case errors.As(err, &violated):
		return "violation " + violated.Section + " " + particulars.ReplaceAllString(violated.Detail, "#")
	case errors.Is(err, initiator.ErrTimeout):
		return "silent"
	case errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return "over"
	}
	return "closed"
}
