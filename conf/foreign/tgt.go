package foreign

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"lunar/conf"
)

// readTGT reads targets.conf of tgt-admin.
func readTGT(f File, include Include) (*server, error) {
	s, root := &server{}, &item{used: true}
	m := &markup{include: include, notes: &s.notes}
	if err := m.parse(f, root, 0); err != nil {
		return nil, err
	}
	driver := root.text("default-driver")
	s.discovery = tgtAuth(root, "incomingdiscoveryuser", "outgoingdiscoveryuser")
	targets := root.all("target")
	// tgt-admin goes by the names' order, and so do the numbers that identities have in them.
	slices.SortStableFunc(targets, func(a, b *item) int { return strings.Compare(a.arg(0), b.arg(0)) })
	tid := 0
	for _, t := range targets {
		if given, ok := t.number("controller_tid"); ok {
			tid = int(given)
		} else {
			tid++
		}
		tgtTarget(s, t, tid, driver)
	}
	if len(targets) > 0 {
		s.note("", "tgtd's portals are on its command line and not in this file", "the default, port 3260 on all addresses, was taken: change portal-groups if tgtd was started with --iscsi portal=")
	}
	s.notes = append(s.notes, root.leftovers(&tgtKnown)...)
	return s, nil
}

func tgtTarget(s *server, t *item, tid int, driver string) {
	if own := t.text("driver"); own != "" {
		driver = own
	}
	out := &target{name: t.arg(0), place: t.place}
	r := &rule{place: t.place, auth: tgtAuth(t, "incominguser", "outgoinguser")}
	for _, name := range t.all("initiator-name") {
		r.initiators = append(r.initiators, name.arg(0))
	}
	for _, i := range t.all("initiator-address") {
		if text := i.arg(0); strings.EqualFold(text, "ALL") {
			continue
		} else if p, ok := network(text); ok {
			r.networks = append(r.networks, p)
		} else {
			s.note(i.place, "an initiator-address that is no address was not carried over, and nobody is admitted by it", "add it to networks")
			r.networks = append(r.networks, netip.PrefixFrom(netip.IPv6Unspecified(), 128))
		}
	}
	if driver == "iser" {
		s.note(t.place, "the target was served over RDMA", "add listen-iser to its portal group")
	}
	used := map[int64]bool{}
	stores := append(sortedStores(t.all("backing-store")), sortedStores(t.all("direct-store"))...)
	for _, b := range stores {
		if n, ok := first(b, t).number("lun"); ok {
			used[n] = true
		}
	}
	for _, b := range stores {
		number, ok := first(b, t).number("lun")
		if !ok {
			for number = 1; used[number]; number++ {
				continue
			}
			used[number] = true
		}
		r.luns = append(r.luns, lun{place: b.place, number: number, volume: tgtVolume(s, t, b, tid, number)})
	}
	if len(stores) > 0 {
		out.rules = []*rule{r}
	}
	if level, ok := t.number("ErrorRecoveryLevel"); ok {
		s.recovery = max(s.recovery, int(level))
	}
	if n, ok := t.number("MaxConnections"); ok {
		s.joined = max(s.joined, int(n))
	}
	s.targets = append(s.targets, out)
}

// sortedStores are in the order in which tgt-admin numbers them.
func sortedStores(all []*item) []*item {
	return slices.SortedStableFunc(slices.Values(all), func(a, b *item) int { return strings.Compare(a.arg(0), b.arg(0)) })
}

// layered looks into a block first, and then around it.
type layered struct{ in, around *item }

func first(in, around *item) layered { return layered{in, around} }

func (l layered) text(key string) string {
	outer := l.around.text(key)
	if inner := l.in.text(key); inner != "" {
		return inner
	}
	return outer
}

func (l layered) number(key string) (int64, bool) {
	n, err := strconv.ParseInt(l.text(key), 0, 64)
	return n, err == nil
}

// tgtVolume is a backing-store or direct-store; its id is its path.
func tgtVolume(s *server, t, b *item, tid int, number int64) string {
	path, own := strings.Join(b.args, " "), first(b, t)
	v := &volume{id: path, place: b.place, kind: conf.FileVolume, path: path, vendor: "IET", product: "VIRTUAL-DISK", revision: "0001"}
	if isDevice(path) {
		v.kind = conf.BlockVolume
	}
	if kind := own.text("bs-type"); kind == "null" {
		v.kind, v.size = conf.NullVolume, 1<<30
	} else if kind != "" && kind != "rdwr" && kind != "aio" {
		s.note(b.place, "a backing store of another bs-type than rdwr, aio and null was not carried over", "map its image as a block device (rbd map, for instance) and add the volume")
		markAll(b)
		return path
	}
	if kind := own.text("device-type"); kind != "" && kind != "disk" {
		s.note(b.place, "a device of another device-type than disk was not carried over", "")
		return path
	}
	if strings.EqualFold(b.key, "direct-store") {
		s.note(b.place, "vendor, product, revision and serial number of a direct-store are those of the disk, which this file does not have", "compare sg_inq of the disk with that of an initiator, and set vendor, product, revision and serial")
	}
	for key, to := range map[string]*string{"vendor_id": &v.vendor, "product_id": &v.product, "product_rev": &v.revision} {
		if value := own.text(key); value != "" {
			*to = value
		}
	}
	if n, ok := own.number("block-size"); ok {
		v.block = int(n)
	}
	v.readOnly, v.removable = isOn(own.text("readonly")), isOn(own.text("removable"))
	v.stable = strings.EqualFold(own.text("write-cache"), "off")
	tgtIdentity(v, own.text("scsi_id"), own.text("scsi_sn"), tid, number)
	for _, had := range s.volumes {
		if had.id == path {
			if had.serial != v.serial || hexOf(had.designators) != hexOf(v.designators) {
				s.note(b.place, "the same store is a LUN before, under another identity; both LUNs have that of the first", "log hosts out and in again that know it by the other one")
			}
			return path
		}
	}
	s.volumes = append(s.volumes, v)
	return path
}

func isOn(text string) bool {
	return text == "1" || strings.EqualFold(text, "on") || strings.EqualFold(text, "yes") || strings.EqualFold(text, "true")
}

// tgtIdentity follows spc_lu_init, update_vpd_80 and update_vpd_83.
func tgtIdentity(v *volume, id, serial string, tid int, number int64) {
	if id == "" {
		id = fmt.Sprintf("IET     %04x%04x", tid, number)
	}
	if serial == "" {
		serial = fmt.Sprintf("beaf%d%d", tid, number)
	}
	const length = 36 // of both, at most
	id, serial = id[:min(len(id), length)], serial[:min(len(serial), length)]
	v.serial = strings.Repeat(" ", length-len(serial)) + serial
	local := binary.BigEndian.AppendUint64(nil, uint64(tid)<<32|uint64(number))
	local[0] |= 0x30
	var high, low uint64
	for _, c := range []byte(id) { // each character is a digit, or nothing
		digit, err := strconv.ParseUint(string(rune(c)), 16, 8)
		if err != nil {
			digit = 0
		}
		high, low = high<<4|low>>60, low<<4|digit
	}
	extended := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, high), low)
	extended[0] = extended[0]&0x0f | 0x60
	v.designators = [][]byte{
		descriptor(asciiCode, t10Type, padded(id, length, 0)),
		descriptor(binaryCode, naaType, local),
		descriptor(binaryCode, naaType, extended),
	}
}

// tgtAuth is of lines with a name and a secret; nil: there are none.
func tgtAuth(i *item, incoming, outgoing string) *auth {
	a := &auth{place: i.place}
	for _, line := range i.all(incoming) {
		a.users = append(a.users, user{line.arg(0), line.arg(1)})
	}
	if line := i.one(outgoing); line != nil {
		a.mutual = user{line.arg(0), line.arg(1)}
	}
	if a.users == nil {
		return nil
	}
	return a
}

// network is an address or a network.
func network(text string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
	}
	p, err := netip.ParsePrefix(strings.NewReplacer("[", "", "]", "").Replace(text))
	return p.Masked(), err == nil && !p.Addr().Is4In6()
}

var tgtKnown = knowledge{
	quiet: []string{
		"ignore-errors", "control-port", "allow-in-use", "maxrecvdatasegmentlength", "maxxmitdatasegmentlength", "initialr2t", "maxoutstandingr2t", "immediatedata",
		"firstburstlength", "maxburstlength", "datapduinorder", "datasequenceinorder", "ifmarker", "ofmarker", "defaulttime2wait", "defaulttime2retain", "ofmarkint",
		"ifmarkint", "optimal_xfer_gran", "optimal_xfer_len", "la_lba", "sense_format", "bsoflags", "vendor_id", "product_id", "product_rev", "scsi_id", "scsi_sn",
		"readonly", "removable", "write-cache", "lun", "block-size", "bs-type", "device-type",
	},
	usual: map[string]string{"headerdigest": "None", "datadigest": "None", "online": "1", "isns": "off"},
	advice: map[string]string{
		"headerdigest": "require digests at the initiators", "datadigest": "require digests at the initiators",
		"mode_page": "Lunar has mode pages of its own; for a volatile cache, see write", "lbppbe": "set physical-block-size",
		"isns": "Lunar registers with no iSNS server: give initiators the portals", "isnsserverip": "Lunar registers with no iSNS server",
	},
}
