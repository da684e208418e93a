package member

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestEtcdWarnings: of warnings that strangers cause in etcd by each connection, few pass, also when
// lines come in pieces; how many did not is told, and errors and other texts pass all.
func TestEtcdWarnings(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	m := newMessages(&out, func() time.Time { return now })
	say := func(text string) {
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
			if n, err := m.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("found %d, %v", n, err)
			}
		}
	}
	for i := range 1000 {
		say(fmt.Sprintf("{\"level\":\"warn\",\"msg\":\"rejected connection on peer endpoint\",\"remote-addr\":\"192.0.2.1:%d\"}\n", i))
	}
	if n := strings.Count(out.String(), "rejected"); n != eachWarning.Burst {
		t.Errorf("found %d warnings, expected %d", n, eachWarning.Burst)
	}
	now = now.Add(eachWarning.Every)
	say("{\"level\":\"warn\",\"msg\":\"rejected connection on peer endpoint\"}\n")
	if want := fmt.Sprint(1000-eachWarning.Burst, " warnings of etcd like the following one"); !strings.Contains(out.String(), want) {
		t.Errorf("found no %q", want)
	}
	out.Reset()
	long := strings.Repeat("x", 2*longest)
	for range 100 {
		say("{\"level\":\"error\",\"msg\":\"e\"}\npanic: p\n")
	}
	say(long + "\n")
	if n := strings.Count(out.String(), "panic: p\n"); n != 100 || strings.Count(out.String(), `"e"`) != 100 || !strings.HasSuffix(out.String(), long+"\n") {
		t.Errorf("found %d of 100 texts that are no warnings, and %d bytes", n, out.Len())
	}
}
