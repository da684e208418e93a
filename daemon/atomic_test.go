package daemon

import (
	"bytes"
	"syscall"
	"testing"

	"lunar/internal/initiator"
)

// TestAtomicWritesSurviveKills: whenever the server dies, of the write that was
// under way all is there or nothing, and everything of those that were answered,
// also over data that the cache had not written back.
func TestAtomicWritesSurviveKills(t *testing.T) {
	const lba, blocks = 40, 400 // four blocks of the cache
	extent := func(opcode byte) []byte {
		return []byte{opcode, 0, 0, 0, 0, 0, 0, 0, 0, lba, 0, 0, blocks >> 8, blocks & 0xff, 0, 0}
	}
	data := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, blocks*512) }
	for _, volume := range []string{
		"{type: file, path: back.img, size: 32MiB, write: back, cache: {flush-age: 1h}}",
		"{type: file, path: through.img, size: 32MiB, cache: true}",
		"{type: file, path: plain.img, size: 32MiB}",
	} {
		w := newWriteBack(t)
		w.configure(t, volume)
		s := serveChild(t, w.args()...)
		for answers := range 4 {
			c := w.dial(t, s.portal)
			if res, err := c.Command(extent(0x8a), 0, data(100), 0); err != nil || res.Status != initiator.StatusGood {
				t.Fatalf("WRITE: %v, %+v", err, res)
			}
			answered, over := make(chan int, 1<<10), make(chan int)
			go func() {
				i := 0
				for ; i < cap(answered); i++ {
					res, err := c.Command(extent(0x9c), 0, data(i), 0)
					if err != nil || res.Status != initiator.StatusGood {
						break
					}
					answered <- i
				}
				over <- i // the first that was not answered
			}()
			for range answers {
				<-answered
			}
			_ = s.end(t, syscall.SIGKILL)
			pending := <-over
			s = serveChild(t, w.args()...)
			c = w.dial(t, s.portal)
			res, err := c.Command(extent(0x88), 0, nil, blocks*512)
			if err != nil || res.Status != initiator.StatusGood {
				t.Fatalf("READ: %v, %+v", err, res)
			}
			before := data(100)
			if pending > 0 {
				before = data(pending - 1)
			}
			if !bytes.Equal(res.In, before) && !bytes.Equal(res.In, data(pending)) {
				t.Errorf("%s: killed at write %d: found %d and %d", volume, pending, res.In[0], res.In[len(res.In)-1])
			}
		}
		_ = s.end(t, syscall.SIGKILL)
	}
}
