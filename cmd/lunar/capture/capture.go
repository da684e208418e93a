// Package capture writes traces as files that Wireshark opens (pcapng). A trace has the
// headers of PDUs alone; those of Ethernet, IP and TCP before them are made up of the
// connection's addresses and of how many bytes there were.
package capture

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"lunar/control"
)

// maxSegment is how many bytes a packet stands for at most: IP has 16 bits for them.
const maxSegment = 65_000

// The MAC addresses, which are nobody's (locally administered).
var (
	initiatorMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}
	targetMAC    = net.HardwareAddr{2, 0, 0, 0, 0, 2}
)

// Writer writes a file. Its methods are for one goroutine.
type Writer struct {
	file  *pcapgo.NgWriter
	flows map[int]*flow // by CID
	buf   gopacket.SerializeBuffer
}

// flow is a connection.
type flow struct {
	initiator, target end
}

// end is one side of a connection.
type end struct {
	mac  net.HardwareAddr
	at   netip.AddrPort
	next uint32 // sequence number of TCP
}

// New begins a file.
func New(to io.Writer) (*Writer, error) {
	of := pcapgo.DefaultNgInterface
	of.Name, of.LinkType = "lunar", layers.LinkTypeEthernet
	file, err := pcapgo.NewNgWriterInterface(to, of, pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Hardware: runtime.GOARCH, OS: runtime.GOOS, Application: "lunar trace", Comment: "iSCSI headers as a target has seen them; data were not captured, and Ethernet, IP and TCP are made up",
	}})
	if err != nil {
		return nil, err
	}
	return &Writer{file, map[int]*flow{}, gopacket.NewSerializeBuffer()}, file.Flush()
}

// Connection tells of a connection before its first PDU.
func (w *Writer) Connection(c *control.TraceConnection) {
	f := &flow{initiator: end{initiatorMAC, addressOf(c.Address, 49152), 1}, target: end{targetMAC, addressOf(c.Portal, 3260), 1}}
	if f.initiator.at.Addr().Is4() != f.target.at.Addr().Is4() { // one of them is not known
		f.initiator.at, f.target.at = addressOf("", 49152), addressOf("", 3260)
	}
	w.flows[c.CID] = f
}

// addressOf is an address, one of the documentation (RFC 5737) if it is not known.
func addressOf(text string, port uint16) netip.AddrPort {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, 1}), port)
	}
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// PDU writes a PDU: its header, and the place that the rest of it had.
func (w *Writer) PDU(p *control.TracedPDU) error {
	header, err := hex.DecodeString(p.BHS)
	if err != nil {
		return fmt.Errorf("bhs: %w", err)
	}
	f := w.flows[p.CID]
	if f == nil {
		return fmt.Errorf("found a PDU of connection %d, expected one that was told before", p.CID)
	}
	from, to := &f.initiator, &f.target
	if p.Direction == control.TraceSent {
		from, to = to, from
	}
	notes := notesOf(p)
	for rest := len(header) + p.AHSLength + (p.DataLength+3)&^3; rest > 0; {
		n := min(rest, maxSegment)
		if err := w.segment(p, from, to, header, n, n == rest, notes); err != nil {
			return err
		}
		from.next += uint32(n)
		rest -= n
		header, notes = nil, nil
	}
	return w.file.Flush()
}

// End writes how many PDUs there were, and how many of them the file does not have.
// Wireshark shows it with the properties of the file.
func (w *Writer) End(e *control.TraceEnd) error {
	missing := uint64(e.Missing)
	now := time.Now()
	if err := w.file.WriteInterfaceStats(0, pcapgo.NgInterfaceStatistics{LastUpdate: now, EndTime: now, PacketsReceived: uint64(e.PDUs) + missing, PacketsDropped: missing}); err != nil {
		return err
	}
	return w.file.Flush()
}

func notesOf(p *control.TracedPDU) (notes []string) {
	if p.MissingBefore > 0 {
		notes = append(notes, fmt.Sprintf("%d PDUs before this one are missing in the trace", p.MissingBefore))
	}
	if p.Damaged {
		notes = append(notes, "The data digest was wrong")
	}
	return notes
}

// segment writes a packet that stands for n bytes, of which only the first are there.
func (w *Writer) segment(p *control.TracedPDU, from, to *end, there []byte, n int, last bool, notes []string) error {
	tcp := &layers.TCP{
		SrcPort: layers.TCPPort(from.at.Port()), DstPort: layers.TCPPort(to.at.Port()),
		Seq: from.next, Ack: to.next, DataOffset: 5, ACK: true, PSH: last, Window: 65535,
	}
	ethernet := &layers.Ethernet{SrcMAC: from.mac, DstMAC: to.mac, EthernetType: layers.EthernetTypeIPv4}
	ip, headers := ipv4(from, to, n), ethernetHeader+ipv4Header+tcpHeader
	if from.at.Addr().Is6() {
		ethernet.EthernetType, ip, headers = layers.EthernetTypeIPv6, ipv6(from, to, n), ethernetHeader+ipv6Header+tcpHeader
	}
	if err := tcp.SetNetworkLayerForChecksum(ip.(gopacket.NetworkLayer)); err != nil {
		return err
	}
	// Lengths are of what there was, not of what is there.
	if err := gopacket.SerializeLayers(w.buf, gopacket.SerializeOptions{ComputeChecksums: true}, ethernet, ip, tcp, gopacket.Payload(there)); err != nil {
		return err
	}
	packet := w.buf.Bytes()[:headers+len(there)] // without the padding of short frames
	info := gopacket.CaptureInfo{Timestamp: p.Time, CaptureLength: len(packet), Length: headers + n}
	return w.file.WritePacketWithOptions(info, packet, pcapgo.NgPacketOptions{Comments: notes})
}

// Lengths of headers without options, in bytes.
const (
	ethernetHeader = 14
	ipv4Header     = 20
	ipv6Header     = 40
	tcpHeader      = 20
)

func ipv4(from, to *end, n int) gopacket.SerializableLayer {
	return &layers.IPv4{
		Version: 4, IHL: 5, TTL: 64, Protocol: layers.IPProtocolTCP, Flags: layers.IPv4DontFragment, Length: uint16(ipv4Header + tcpHeader + n),
		SrcIP: from.at.Addr().AsSlice(), DstIP: to.at.Addr().AsSlice(),
	}
}

func ipv6(from, to *end, n int) gopacket.SerializableLayer {
	return &layers.IPv6{
		Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolTCP, Length: uint16(tcpHeader + n),
		SrcIP: from.at.Addr().AsSlice(), DstIP: to.at.Addr().AsSlice(),
	}
}
