package tcp

import (
	"bytes"
	"io"
	"lunar/internal/buf"
	"testing"

	"lunar/target/pdu"
)

// TestSmallTogether: of many small responses, as many leave together as the kernel
// makes one segment of; a large one is no reason to send what is queued.
func TestSmallTogether(t *testing.T) {
	const size, count = 4 << 10, 40
	s, charged := newShelf(t), buf.Account{}
	text := bytes.Repeat([]byte{1}, size)
	together := sendMost / (pdu.BHSLength + size)
	s.on(func() {
		for i := range count {
			p := (*pdu.DataIn)(&pdu.BHS{}).Init()
			p.SetHasStatus(true)
			p.BHS().SetDataSegmentLength(size)
			s.want = append(append(s.want, p.BHS()[:]...), text...)
			s.mover.PutData(p, text, nil)
			if queued, want := int(s.mover.tx.tail-s.mover.tx.head), i%together+1; queued != want {
				t.Errorf("%d responses are queued after %d, expected %d", queued, i+1, want)
			}
		}
		before := s.mover.tx.tail - s.mover.tx.head
		s.put(2, -1, &charged)
		if queued := s.mover.tx.tail - s.mover.tx.head; queued != before+1 {
			t.Errorf("%d responses are queued after a large one, expected %d", queued, before+1)
		}
	})
	s.read(t)
	s.peer.Close()
	s.on(func() { s.mover.Close(io.EOF, false) })
	<-s.r.closed
}
