package foreign

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	gotgt "github.com/gostor/gotgt/pkg/config"
	"github.com/gostor/gotgt/pkg/version"

	"lunar/conf"
)

// readGotgt reads config.json of gotgt, as gotgt does.
func readGotgt(f File, _ Include) (*server, error) {
	if _, err := parseJSON(f.Data); err != nil { // it bounds depth and number of parts
		return nil, err
	}
	var c gotgt.Config
	if err := json.NewDecoder(bytes.NewReader(f.Data)).Decode(&c); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return nil, fmt.Errorf("line %d: found another kind of value than gotgt reads", lineAt(f.Data, kind.Offset))
		}
		return nil, errors.New("found text that is no JSON")
	}
	s := &server{}
	for i := range c.Storages {
		gotgtStorage(s, &c.Storages[i], fmt.Sprintf("storages[%d]", i))
	}
	for _, name := range slices.Sorted(maps.Keys(c.ISCSITargets)) {
		gotgtTarget(s, &c, name)
	}
	return s, nil
}

func gotgtStorage(s *server, b *gotgt.BackendStorage, place string) {
	kind, path, _ := strings.Cut(b.Path, ":")
	v := &volume{
		id: fmt.Sprint(b.DeviceID), place: place, kind: conf.FileVolume, path: path, block: 1 << min(b.BlockShift, 31),
		vendor: "GOSTOR", product: "GOTGT", revision: version.SCSIVersion,
	}
	switch {
	case kind == "null":
		v.kind, v.size = conf.NullVolume, 1<<30
		s.note(place, "a null device has no size in gotgt's file; 1 GiB was taken", "set size")
	case kind != "file":
		s.note(place, "a storage of a kind that Lunar does not have was not carried over", "map it as a block device and add the volume")
		return
	}
	if b.BlockShift == 0 {
		v.block = 0
	}
	if !b.Online {
		s.note(place, "a storage that is offline was carried over as if it were not", "remove its LUNs if it is to stay so")
	}
	// InquiryPage0x80 and InquiryPage0x83 of pkg/scsi/spc.go.
	v.serial = string(padded("gotgt-"+v.id, 36, ' '))
	v.designators = [][]byte{descriptor(0x50|binaryCode, protocolValid|naaType, binary.BigEndian.AppendUint64(nil, b.DeviceID|3<<60))}
	s.volumes = append(s.volumes, v)
}

func gotgtTarget(s *server, c *gotgt.Config, name string) {
	t, place := c.ISCSITargets[name], "iscsitargets."+shownPlace(name)
	out := &target{name: name, place: place}
	for _, tag := range slices.Sorted(maps.Keys(t.TPGTs)) {
		n, _ := strconv.Atoi(tag)
		p := &portals{tag: n, home: place + ".tpgts." + shownPlace(tag)}
		for _, id := range t.TPGTs[tag] {
			at := slices.IndexFunc(c.ISCSIPortals, func(i gotgt.ISCSIPortalInfo) bool { return uint64(i.ID) == id })
			if at < 0 {
				continue
			}
			if addr, err := netip.ParseAddrPort(c.ISCSIPortals[at].Portal); err == nil && addr.Port() != 0 {
				p.at = append(p.at, portal{addr: addr})
			} else {
				s.note(fmt.Sprintf("iscsiportals[%d]", at), "a portal without an address and port was not carried over", "add it to the portal-groups")
			}
		}
		out.portals = append(out.portals, p)
	}
	r := &rule{place: place}
	for _, number := range slices.Sorted(maps.Keys(t.LUNs)) {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			n = -1
		}
		r.luns = append(r.luns, lun{place: place + ".luns." + shownPlace(number), number: n, volume: fmt.Sprint(t.LUNs[number])})
	}
	out.rules = []*rule{r}
	s.targets = append(s.targets, out)
}
