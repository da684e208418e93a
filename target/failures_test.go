package target

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestFailuresAreFair: who fails often, under whatever names, pushes out only what is known
// of his own host.
func TestFailuresAreFair(t *testing.T) {
	s := &Server{failures: newFailures()}
	from := func(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }
	start := time.Unix(1, 0)
	s.failures.note(Failure{At: start, Remote: from("192.0.2.1:1"), Initiator: "iqn.2026-11.test:A", Reason: "first"})
	for i := range 10_000 {
		s.failures.note(Failure{At: start.Add(time.Duration(i)), Remote: from("192.0.2.2:1"), Initiator: fmt.Sprint("x", i%3), Reason: strings.Repeat("r", 5000), User: strings.Repeat("u", 5000)})
	}
	if of := s.Failures("iqn.2026-11.test:a"); len(of) != 1 || of[0].Reason != "first" {
		t.Errorf("found %+v", of)
	}
	all := 0
	for i := range 3 {
		of := s.Failures(fmt.Sprint("X", i))
		for j, one := range of {
			if len(one.Reason) != failedText || len(one.User) != failedText || j > 0 && one.At.After(of[j-1].At) {
				t.Errorf("found %d bytes at %v", len(one.Reason), one.At)
			}
		}
		all += len(of)
	}
	if all != failedPerHost {
		t.Errorf("found %d, expected %d", all, failedPerHost)
	}
}
