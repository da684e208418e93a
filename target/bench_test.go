package target_test

import (
	"encoding/binary"
	"io"
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/internal/initiator"
	"lunar/target/pdu"
)

// benchConn is the quickest of clients: prepared requests, replies skipped by
// length, nothing allocated.
type benchConn struct {
	b      testing.TB
	stream io.ReadWriter
	cmdSN  uint32
	out    []byte
	in     []byte
}

func (c *benchConn) request(cdb, data []byte, in int) {
	var p pdu.SCSICommand
	p.Init()
	p.BHS().SetFinal(true)
	p.SetWrite(len(data) > 0)
	p.SetRead(in > 0)
	p.SetExpectedDataTransferLength(uint32(max(in, len(data))))
	p.BHS().SetDataSegmentLength(len(data))
	p.BHS().SetITT(c.cmdSN)
	p.BHS().SetCmdSN(pdu.SN(c.cmdSN))
	copy(p.CDB()[:], cdb)
	c.cmdSN++
	c.out = append(append(c.out, p[:]...), data...)
}

// exchange sends the requests and reads n bytes of replies.
func (c *benchConn) exchange(n int) {
	if _, err := c.stream.Write(c.out); err != nil {
		c.b.Fatal(err)
	}
	c.out = c.out[:0]
	if _, err := io.ReadFull(c.stream, c.in[:n]); err != nil {
		c.b.Fatal(err)
	}
	if op := c.in[0] & 0x3f; op != 0x25 && op != 0x21 {
		c.b.Fatalf("opcode %#x", op)
	}
}

// BenchmarkCommand runs batches of commands through the whole server on a
// loopback connection. It must report 0 allocs/op.
func BenchmarkCommand(b *testing.B) {
	stores := map[string]func(b *testing.B) (backstore.Store, error){
		"ram": func(*testing.B) (backstore.Store, error) { return backstore.NewRAM(16<<20, 512) },
		"file": func(b *testing.B) (backstore.Store, error) {
			return backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(b.TempDir(), "v"), Size: 16 << 20, BlockSize: 512})
		},
	}
	for name, open := range stores {
		for _, write := range []bool{false, true} {
			op := map[bool]string{false: "read4k", true: "write4k"}[write]
			b.Run(name+"/"+op, func(b *testing.B) {
				store, err := open(b)
				if err != nil {
					b.Fatal(err)
				}
				benchCommands(b, newRig(b, rigOptions{store: store}), write)
			})
		}
	}
}

func benchCommands(b *testing.B, r *rig, write bool) {
	const depth, size = 32, 4096
	login := r.login(initiator.Options{CmdSN: 1})
	batch := newBatch(b, login, write, depth, size)
	batch()
	b.ReportAllocs()
	for n := 0; b.Loop(); n += depth {
		batch()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/depth, "ns/command")
}

// batchOf returns a function that runs depth reads or writes of size bytes and
// awaits their replies.
func batchOf(c *benchConn, write bool, depth, size int) func() {
	data := make([]byte, size)
	reply := 48 + size
	cdb := cdbRead16(0, uint32(size/512))
	if write {
		reply, cdb = 48, cdbWrite16(0, uint32(size/512))
	}
	return func() {
		for i := range depth {
			binary.BigEndian.PutUint64(cdb[2:], uint64(i*8))
			if write {
				c.request(cdb, data, 0)
			} else {
				c.request(cdb, nil, size)
			}
		}
		c.exchange(depth * reply)
	}
}

// nextCmdSN asks by a ping for the ExpCmdSN.
func nextCmdSN(b testing.TB, c *initiator.Conn) []byte {
	p := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	p.SetImmediate()
	p.SetU32(16, 77)
	p.SetU32(20, initiator.NoTag)
	if err := c.Send(p); err != nil {
		b.Fatal(err)
	}
	in, err := c.Receive(initiator.DefaultTimeout)
	if err != nil {
		b.Fatal(err)
	}
	return in.BHS[28:32]
}
