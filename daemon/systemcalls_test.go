package daemon

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lunar/internal/initiator"
)

// commandsTraced is how many commands of each kind are traced.
const commandsTraced = 100

// tracedCall is a line of strace -f -ttt -y: thread, time, call and what its first descriptor is.
var tracedCall = regexp.MustCompile(`(?m)^(\d+) +(\d+\.\d+) ([a-z0-9_]+)\((?:\d+<([a-zA-Z_]*:?\[?[a-zA-Z_]*))?`)

// callCounts says how often the event thread made a system call, by call and descriptor.
type callCounts map[string]int

// countCalls counts those of the thread that sends, within a time. How often it looks for
// something to do, and is woken to, depends on how fast the machine is, and when Go's runtime
// maps memory on whoever waits for the garbage collector.
func countCalls(text string, from, to time.Time) callCounts {
	byThread, sender := map[string]callCounts{}, ""
	for _, m := range tracedCall.FindAllStringSubmatch(text, -1) {
		at, _ := strconv.ParseFloat(m[2], 64) // digits and a point
		if now := time.UnixMicro(int64(at * 1e6)); now.Before(from) || now.After(to) {
			continue
		}
		if m[3] == "mmap" || strings.Contains(m[4], "event") { // epoll, eventfd
			continue
		}
		if byThread[m[1]] == nil {
			byThread[m[1]] = callCounts{}
		}
		byThread[m[1]][m[3]+" "+m[4]]++
		if m[3] == "sendmsg" {
			sender = m[1]
		}
	}
	return byThread[sender]
}

// commandCalls runs reads and writes one after the other, of each volume, and returns what
// they made the event thread do.
func commandCalls(t *testing.T, qos, volumes string) map[string]callCounts {
	t.Helper()
	const size = 4096
	s := serveTraced(t, t.TempDir(), `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
targets: {"iqn.2026-11.test:t": {luns: {0: ram, 1: file}}}
`+qos+`
volumes:
  ram: {type: ram, size: 4MiB}
  file: {type: file, path: file.img, size: 4MiB, direct: false}
`+volumes, "-ttt -y -e trace=%desc,%network")
	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	type span struct{ from, to time.Time }
	spans := map[string]span{}
	data := pattern(1, 1)[:size]
	for lun, volume := range []string{"ram", "file"} {
		settle(t, c, uint64(lun))
		for _, kind := range []struct {
			name string
			op   byte
			out  []byte
			in   int
		}{{"write", 0x2a, data, 0}, {"read", 0x28, nil, size}} {
			command := func(i int) {
				cdb := cdb10(kind.op, uint32(i%8)*8)
				cdb[8] = size / 512
				transfer(t, c, cdb, uint64(lun), kind.out, kind.in)
			}
			for i := range 8 {
				command(i)
			}
			from := time.Now()
			for i := range commandsTraced {
				command(i)
			}
			spans[volume+" "+kind.name] = span{from, time.Now()}
		}
	}
	text := s.kill(t)
	counts := map[string]callCounts{}
	for kind, s := range spans {
		counts[kind] = countCalls(text, s.from, s.to)
	}
	return counts
}

// TestSystemCallsOfCommands: a command costs one call to receive it, one to send and, for a
// file, one for its data. Network classes with a governor, mirrors and devices for writes in
// excess that are others' add none; what the governor adds to its own shows that the count
// sees it.
func TestSystemCallsOfCommands(t *testing.T) {
	const network = "network: {dscp: {low: CS1}, group-numbers: {5: high}, governor: true}"
	rule := func(who string) string {
		return fmt.Sprintf(`qos: {%s, rules: [{name: some, initiators: ["%s"], class: low, group-number: true}]}`, network, who)
	}
	alone := commandCalls(t, "", "")
	for kind, data := range map[string]string{"ram read": "", "ram write": "", "file read": "preadv2 ", "file write": "io_uring_enter anon_inode:[io_uring"} {
		want := callCounts{"read socket:[": commandsTraced, "sendmsg socket:[": commandsTraced}
		if data != "" {
			want[data] = alone[kind][data] // by kernel and file system
		}
		if !maps.Equal(alone[kind], want) {
			t.Errorf("%s: found %v, expected %v", kind, alone[kind], want)
		}
	}
	beside := commandCalls(t, rule("iqn.2026-11.test:others"), `
  m: {type: mirror, members: [a.img, b.img], size: 4MiB, held: 8MiB}
  x: {type: file, path: slow.img, size: 4MiB, excess: fast.img, excess-size: 16MiB}
`)
	for kind := range alone {
		if !maps.Equal(alone[kind], beside[kind]) {
			t.Errorf("%s: found %v beside others' classes and windows, expected %v", kind, beside[kind], alone[kind])
		}
	}
	governed := commandCalls(t, rule("*"), "")
	if n := governed["ram read"]["getsockopt socket:["]; n == 0 {
		t.Errorf("found %v of a connection that is governed, expected looks at it: the test proves nothing", governed["ram read"])
	}
}
