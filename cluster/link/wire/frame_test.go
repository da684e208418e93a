package wire

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzFrames reads what anybody might send: as greetings and as frames, within bounds, and what
// was read is written as it was.
func FuzzFrames(f *testing.F) {
	var b [headerSize]byte
	(&header{sort: request, kind: 1, number: 7, length: 5, room: 9}).put(&b)
	f.Add(append(b[:], "hello"...))
	var hi bytes.Buffer
	if err := (Hello{Protocol: Protocol, Cluster: "c", Node: "n", Incarnation: "i", Way: 1}).Write(&hi); err != nil {
		f.Fatal(err)
	}
	f.Add(hi.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, err := ReadHello(bytes.NewReader(data)); err == nil {
			_ = h.Judge("c", "n")
		}
		r := bytes.NewReader(data)
		for {
			at := len(data) - r.Len()
			h, err := readHeader(r)
			if err != nil {
				return
			}
			var again [headerSize]byte
			if h.put(&again); !bytes.Equal(again[:], data[at:at+headerSize]) {
				t.Fatalf("found % x, expected % x", again, data[at:])
			}
			if h.length > MaxBody {
				t.Fatalf("a body of %d bytes was taken", h.length)
			}
			if int(h.length) > r.Len() {
				return
			}
			if _, err := r.Seek(int64(h.length), 1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Each thing that is wrong with a greeting is said.
func TestJudge(t *testing.T) {
	good := Hello{Protocol: Protocol, Cluster: "c", Node: "n", Incarnation: "i"}
	if err := good.Judge("c", "n"); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Hello){
		"found protocol 9":            func(h *Hello) { h.Protocol = 9 },
		`found a node of cluster "d"`: func(h *Hello) { h.Cluster = "d" },
		`found node "m"`:              func(h *Hello) { h.Node = "m" },
		"found incarnation":           func(h *Hello) { h.Incarnation = "" },
		"way 34":                      func(h *Hello) { h.Way = Ways },
		"refuses this node: why":      func(h *Hello) { h.Refused = "why" },
	} {
		h := good
		change(&h)
		if err := h.Judge("c", "n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("found error %v, expected %q", err, want)
		}
	}
}
