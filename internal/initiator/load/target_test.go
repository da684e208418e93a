package load

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"lunar/internal/initiator"
)

// diskTarget is a target in a few lines: a memory disk of 512-byte blocks
// behind a minimal login, good enough for the engine to talk to.
type diskTarget struct {
	t        testing.TB
	listener net.Listener
	answers  map[string]string // to login keys; others are echoed
	window   uint32            // commands that a connection may have outstanding
	status   byte              // of every READ and WRITE
	corrupt  func(lba uint64, data []byte)
	wg       sync.WaitGroup

	mu    sync.Mutex
	disk  []byte
	conns []net.Conn
}

const diskBlocks = 4096

func newDiskTarget(t testing.TB) *diskTarget {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &diskTarget{t: t, listener: l, answers: map[string]string{}, window: 64, disk: make([]byte, diskBlocks*512)}
	d.wg.Go(d.accept)
	t.Cleanup(d.close)
	return d
}

func (d *diskTarget) accept() {
	for {
		nc, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.mu.Lock()
		d.conns = append(d.conns, nc)
		d.mu.Unlock()
		d.wg.Go(func() { d.serve(nc) })
	}
}

func (d *diskTarget) close() {
	d.listener.Close()
	d.mu.Lock()
	for _, nc := range d.conns {
		nc.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

func (d *diskTarget) serve(nc net.Conn) {
	defer nc.Close()
	s := &diskSession{d: d, in: bufio.NewReaderSize(nc, 256<<10), out: bufio.NewWriterSize(nc, 256<<10),
		maxSend: 8192, maxBurst: 262144, firstBurst: 65536, maxRecv: 8192, initialR2T: true, immediate: true, writes: map[uint32]*diskWrite{}}
	for {
		if s.in.Buffered() == 0 && s.out.Flush() != nil {
			return
		}
		if err := s.step(); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrUnexpectedEOF) {
				d.t.Log("disk target:", err)
			}
			s.out.Flush()
			return
		}
	}
}

// diskWrite is a write whose data is arriving.
type diskWrite struct {
	command [48]byte
	data    []byte
	have    int
	r2tSN   uint32
}

type diskSession struct {
	d              *diskTarget
	in             *bufio.Reader
	out            *bufio.Writer
	full           bool // login is over
	hdigest        bool
	ddigest        bool
	maxSend        int
	maxRecv        int
	maxBurst       int
	firstBurst     int
	initialR2T     bool
	immediate      bool
	statSN, cmdSN  uint32
	outstanding    uint32
	writes         map[uint32]*diskWrite
	h              [52]byte
	scratch, reply []byte
}

func (s *diskSession) step() error {
	h, data, err := s.read()
	if err != nil {
		return err
	}
	switch h[0] & 0x3f {
	case initiator.OpLoginRequest:
		return s.login(h, data)
	case initiator.OpSCSICommand:
		return s.command(h, data)
	case initiator.OpDataOut:
		return s.dataOut(h, data)
	case initiator.OpNOPOut:
		return nil
	case initiator.OpLogout:
		s.send(s.response(initiator.OpLogoutResponse, h), nil, true)
		return s.out.Flush()
	}
	return errors.New("unexpected opcode")
}

func (s *diskSession) read() ([48]byte, []byte, error) {
	n := 48
	if s.full && s.hdigest {
		n = 52
	}
	if _, err := io.ReadFull(s.in, s.h[:n]); err != nil {
		return [48]byte{}, nil, err
	}
	h := [48]byte(s.h[:])
	if n == 52 && binary.LittleEndian.Uint32(s.h[48:]) != crc32.Checksum(h[:], castagnoli) {
		return h, nil, errors.New("header digest of the initiator is wrong")
	}
	length := int(binary.BigEndian.Uint32(h[4:]) & 0xffffff)
	padded := length + -length&3
	total := padded
	if s.full && s.ddigest && length > 0 {
		total += 4
	}
	if len(s.scratch) < total {
		s.scratch = make([]byte, total)
	}
	data := s.scratch[:total]
	if _, err := io.ReadFull(s.in, data); err != nil {
		return h, nil, err
	}
	if total > padded && binary.LittleEndian.Uint32(data[padded:]) != crc32.Checksum(data[:padded], castagnoli) {
		return h, nil, errors.New("data digest of the initiator is wrong")
	}
	return h, data[:length], nil
}

// response starts a PDU that answers h.
func (s *diskSession) response(opcode byte, h [48]byte) *[48]byte {
	p := &[48]byte{opcode, 0x80}
	copy(p[16:20], h[16:20])
	return p
}

// send stamps the sequence numbers; status uses up a StatSN.
func (s *diskSession) send(p *[48]byte, data []byte, status bool) {
	p[5], p[6], p[7] = byte(len(data)>>16), byte(len(data)>>8), byte(len(data))
	if status || p[0] == initiator.OpR2T {
		put(p[:], 24, s.statSN)
	}
	if status {
		s.statSN++
	}
	put(p[:], 28, s.cmdSN)
	put(p[:], 32, s.cmdSN+s.d.window-s.outstanding-1)
	s.out.Write(p[:])
	if s.full && s.hdigest {
		s.out.Write(binary.LittleEndian.AppendUint32(nil, crc32.Checksum(p[:], castagnoli)))
	}
	s.out.Write(data)
	pad := make([]byte, -len(data)&3)
	s.out.Write(pad)
	if s.full && s.ddigest && len(data) > 0 {
		crc := crc32.Update(crc32.Checksum(data, castagnoli), castagnoli, pad)
		s.out.Write(binary.LittleEndian.AppendUint32(nil, crc))
	}
}

func (s *diskSession) login(h [48]byte, data []byte) error {
	keys, err := initiator.ParseKeys(data)
	if err != nil {
		return err
	}
	var answer initiator.Keys
	for _, k := range keys {
		switch k.Name {
		case "InitiatorName", "SessionType", "TargetName":
			continue
		case "MaxRecvDataSegmentLength":
			s.number(k.Name, k.Value)
			k.Value = "8192"
			if v, ok := s.d.answers[k.Name]; ok {
				k.Value = v
			}
		default:
			if v, ok := s.d.answers[k.Name]; ok {
				k.Value = v
			}
			s.number(k.Name, k.Value)
		}
		answer = append(answer, k)
	}
	p := s.response(initiator.OpLoginResponse, h)
	p[1] = h[1]
	copy(p[8:14], h[8:14])
	last := h[1]&0x83 == 0x83
	if last {
		p[15] = 1
	}
	s.cmdSN = binary.BigEndian.Uint32(h[24:])
	s.send(p, answer.Text(), true)
	s.full = last
	return s.out.Flush()
}

func (s *diskSession) number(name, value string) {
	n := 0
	for _, c := range value {
		n = n*10 + int(c-'0')
	}
	switch name {
	case "HeaderDigest":
		s.hdigest = value == "CRC32C"
	case "DataDigest":
		s.ddigest = value == "CRC32C"
	case "MaxRecvDataSegmentLength":
		s.maxSend = n
	case "MaxBurstLength":
		s.maxBurst = n
	case "FirstBurstLength":
		s.firstBurst = n
	case "InitialR2T":
		s.initialR2T = value == "Yes"
	case "ImmediateData":
		s.immediate = value == "Yes"
	}
}

func (s *diskSession) command(h [48]byte, data []byte) error {
	if sn := binary.BigEndian.Uint32(h[24:]); sn != s.cmdSN {
		return errors.New("CmdSN out of order")
	}
	if s.cmdSN++; s.outstanding >= s.d.window {
		return errors.New("command window overrun")
	}
	s.outstanding++
	switch h[32] {
	case 0x9e:
		in := make([]byte, 32)
		binary.BigEndian.PutUint64(in, diskBlocks-1)
		binary.BigEndian.PutUint32(in[8:], 512)
		return s.dataIn(h, in)
	case 0x28:
		return s.readBlocks(h)
	case 0x2a:
		return s.write(h, data)
	}
	return s.status(h, 0, 0)
}

func (s *diskSession) status(h [48]byte, status byte, expDataSN uint32) error {
	s.outstanding--
	p := s.response(initiator.OpSCSIResponse, h)
	p[3] = status
	put(p[:], 36, expDataSN)
	s.send(p, nil, true)
	return nil
}

func extent(h [48]byte) (from, to int) {
	lba, n := int(binary.BigEndian.Uint32(h[34:])), int(h[39])<<8|int(h[40])
	return lba * 512, (lba + n) * 512
}

func (s *diskSession) readBlocks(h [48]byte) error {
	if s.d.status != 0 {
		p := s.response(initiator.OpSCSIResponse, h)
		s.outstanding--
		p[1] |= initiator.FlagUnderflow
		p[3] = s.d.status
		copy(p[44:], h[20:24])
		s.send(p, nil, true)
		return nil
	}
	from, to := extent(h)
	s.d.mu.Lock()
	s.reply = append(s.reply[:0], s.d.disk[from:to]...)
	s.d.mu.Unlock()
	if s.d.corrupt != nil {
		s.d.corrupt(uint64(from/512), s.reply)
	}
	return s.dataIn(h, s.reply)
}

// dataIn sends data and a good status in its last PDU.
func (s *diskSession) dataIn(h [48]byte, data []byte) error {
	for sn, offset := uint32(0), 0; offset < len(data); sn++ {
		end := min(len(data), offset+s.maxSend)
		p := s.response(initiator.OpDataIn, h)
		p[1] = 0
		if end == len(data) {
			p[1] = initiator.FlagFinal | initiator.FlagStatus
			s.outstanding--
		}
		put(p[:], 20, initiator.NoTag)
		put(p[:], 36, sn)
		put(p[:], 40, uint32(offset))
		s.send(p, data[offset:end], end == len(data))
		offset = end
	}
	return nil
}

func (s *diskSession) write(h [48]byte, data []byte) error {
	w := &diskWrite{command: h, data: make([]byte, binary.BigEndian.Uint32(h[20:]))}
	if len(data) > 0 && !s.immediate {
		return errors.New("immediate data without ImmediateData")
	}
	if h[1]&0x80 == 0 && s.initialR2T {
		return errors.New("unsolicited data with InitialR2T")
	}
	s.writes[binary.BigEndian.Uint32(h[16:])] = w
	w.have = copy(w.data, data)
	if h[1]&0x80 == 0 {
		return nil
	}
	return s.more(w)
}

// more asks for the next burst, or completes the write.
func (s *diskSession) more(w *diskWrite) error {
	itt := binary.BigEndian.Uint32(w.command[16:])
	if w.have == len(w.data) {
		delete(s.writes, itt)
		from, _ := extent(w.command)
		s.d.mu.Lock()
		copy(s.d.disk[from:], w.data)
		s.d.mu.Unlock()
		return s.status(w.command, s.d.status, w.r2tSN)
	}
	p := s.response(initiator.OpR2T, w.command)
	copy(p[8:16], w.command[8:16])
	put(p[:], 20, itt)
	put(p[:], 36, w.r2tSN)
	put(p[:], 40, uint32(w.have))
	put(p[:], 44, uint32(min(s.maxBurst, len(w.data)-w.have)))
	w.r2tSN++
	s.send(p, nil, false)
	return nil
}

func (s *diskSession) dataOut(h [48]byte, data []byte) error {
	w := s.writes[binary.BigEndian.Uint32(h[16:])]
	offset := int(binary.BigEndian.Uint32(h[40:]))
	if w == nil || offset != w.have || len(data) > 8192 {
		return errors.New("Data-Out out of place")
	}
	if binary.BigEndian.Uint32(h[20:]) == initiator.NoTag && w.have+len(data) > s.firstBurst {
		return errors.New("unsolicited data beyond FirstBurstLength")
	}
	w.have += copy(w.data[offset:], data)
	if h[1]&0x80 != 0 {
		return s.more(w)
	}
	return nil
}

// dial opens n sessions to the disk.
func (d *diskTarget) dial(n int, o initiator.Options) []*initiator.Conn {
	d.t.Helper()
	o.Target = "iqn.2026-01.test:disk"
	var conns []*initiator.Conn
	for range n {
		c, err := initiator.Dial(d.t.Context(), d.listener.Addr().String(), o)
		if err != nil {
			d.t.Fatal(err)
		}
		conns = append(conns, c)
	}
	d.t.Cleanup(func() {
		for _, c := range slices.All(conns) {
			c.Close()
		}
	})
	return conns
}
