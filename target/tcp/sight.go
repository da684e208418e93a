package tcp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// leastRTT bounds how often the kernel is asked.
	leastRTT = 100_000
	// leastPackets is the smallest window, whatever QTCP's is. A receiver acknowledges every
	// second packet at once and a single one up to 40 ms later, which would look like
	// congestion and keep the window at one packet for ever.
	leastPackets = 2
	// leastTaken is what the smallest window lets through, in bytes per second: twice what
	// somebody has to take who holds buffers that others wait for (untakenRate in package
	// target).
	leastTaken = 256 << 10
	// jitter is how many mean deviations of the round trip are no congestion.
	jitter = 2
	// optionECN is the bit of tcpi_options by which the kernel says that the connection has
	// agreed on ECN.
	optionECN = 8
)

// sight is what the kernel says of a connection.
type sight struct {
	info   unix.TCPInfo // of the last look
	queued int32        // bytes that were not acknowledged then
	packet int          // bytes
	rtt    int64        // ns, at least leastRTT
	still  int          // looks in a row that found nothing acknowledged
}

// ask asks the kernel (tcp(7), TCP_INFO and SIOCOUTQ). Of a broken socket all stays as it was,
// which the next sendmsg tells.
//
// What is under way is asked for, not reckoned from what the kernel says that it has sent: it
// counts what a queue of this machine drops as sent, and sends it again without counting that
// as sent again. Each such loss would take its bytes from the window for ever.
func (s *sight) ask(fd int) {
	before, size := s.info.Bytes_acked, uint32(unsafe.Sizeof(s.info))
	_, _, _ = unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&s.info)), uintptr(unsafe.Pointer(&size)), 0)
	_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCOUTQ, uintptr(unsafe.Pointer(&s.queued)))
	s.packet = max(1, int(s.info.Snd_mss))
	s.rtt = max(leastRTT, int64(s.info.Rtt)*1000)
	if s.still++; s.info.Bytes_acked != before {
		s.still = 0
	}
}

// least is the smallest window, in bytes.
func (s *sight) least() int {
	least := leastPackets * s.packet
	if s.info.Min_rtt != ^uint32(0) {
		least = max(least, int(int64(s.info.Min_rtt)*leastTaken/1e6))
	}
	return least
}

// marks reports whether the network can mark what is sent: the ends have agreed on ECN.
func (s *sight) marks() bool { return s.info.Options&optionECN != 0 }

// waited is for how long queues held what was sent, in ns: by how much round trips are longer
// than the shortest. As far as they differ from each other they are longer without a queue, too:
// delayed acknowledgements, radio, a CPU that others use.
func (s *sight) waited() int64 {
	return (int64(s.info.Rtt) - int64(s.info.Min_rtt) - jitter*int64(s.info.Rttvar)) * 1000
}
