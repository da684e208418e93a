package foreign

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source writes files of a format as an administrator's might be, whose stores are files
// of 2 MiB in a directory.
type source struct {
	*rand.Rand
	t   *testing.T
	dir string
	n   int
}

// secretMark is in every secret, and in nothing else.
const secretMark = "s3cr3t"

func (s *source) pick(words ...string) string { return words[s.IntN(len(words))] }

// secret has a length that is sometimes none of a secret.
func (s *source) secret() string {
	return secretMark + strings.Repeat("x", s.pick2(0, 6, 7, 10)) + fmt.Sprint(s.IntN(10))
}

func (s *source) pick2(numbers ...int) int { return numbers[s.IntN(len(numbers))] }

func (s *source) path() string {
	s.n++
	path := filepath.Join(s.dir, fmt.Sprintf("store-%d.img", s.n))
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 2<<20)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *source) name(i int) string {
	return fmt.Sprintf("iqn.2026-11.test:%s%d", s.pick("t", "T", "a_b", "x-"), i)
}

func (s *source) user() string { return s.pick("joe", "host-1", "a b", "größe", "none", "x") }

// times runs f a few times.
func (s *source) times(most int, f func(i int)) {
	for i := range 1 + s.IntN(most) {
		f(i)
	}
}

var generators = map[string]func(*source) string{
	"lio": (*source).lio, "tgt": (*source).tgt, "gotgt": (*source).gotgt, "scst": (*source).scst, "ctld": (*source).ctld, "spdk": (*source).spdk,
}

func (s *source) list(most int, f func(i int) string) string {
	var all []string
	s.times(most, func(i int) { all = append(all, f(i)) })
	return strings.Join(all, ",")
}

func (s *source) lio() string {
	objects := s.list(4, func(i int) string {
		return fmt.Sprintf(`{"name": "o%d", "plugin": %q, "dev": %q, "size": 2097152, "wwn": %q, "write_back": %s, "attributes": {"block_size": %d, "emulate_model_alias": %d}}`,
			i, s.pick("fileio", "fileio", "fileio", "ramdisk", "user"), s.path(), s.pick("", "9bb4a4c8-2f31-4b0e-9d3c-6d1f0e5a7c2"+fmt.Sprint(i), "odd \\ \" one"), s.pick("true", "false"), s.pick2(512, 4096, 1024), s.IntN(2))
	})
	targets := s.list(3, func(i int) string {
		acls := s.list(3, func(j int) string {
			return fmt.Sprintf(`{"node_wwn": "iqn.2026-11.test:h%d", "chap_userid": %q, "chap_password": %q, "chap_mutual_userid": %q, "chap_mutual_password": %q, "mapped_luns": [{"index": %d, "tpg_lun": 0, "write_protect": %s}]}`,
				j, s.user(), s.secret(), s.pick("", "m"), s.secret(), s.IntN(20000), s.pick("true", "false"))
		})
		return fmt.Sprintf(`{"fabric": "iscsi", "wwn": %q, "tpgs": [{"tag": %d, "attributes": {"authentication": %d, "generate_node_acls": %d}, "parameters": {"TargetAlias": %q}, "luns": [{"index": 0, "storage_object": "/backstores/fileio/o0"}, {"index": 1, "storage_object": "/backstores/fileio/o%d"}], "node_acls": [%s], "portals": [{"ip_address": %q, "port": %d}]}]}`,
			s.name(i), s.IntN(3), s.IntN(2), s.IntN(2), s.pick("LIO Target", "disks: \\\" #", ""), s.IntN(3), acls, s.pick("127.0.0.1", "127.0.0.2", "0.0.0.0", "[::0]", "host"), s.pick2(3260, 3261))
	})
	return fmt.Sprintf(`{"storage_objects": [%s], "targets": [%s], "fabric_modules": [{"name": "iscsi", "discovery_userid": %q, "discovery_password": %q}]}`, objects, targets, s.pick("", "finder"), s.secret())
}

func (s *source) tgt() string {
	var b strings.Builder
	s.times(3, func(i int) {
		fmt.Fprintf(&b, "<target %s>\n", s.name(i))
		s.times(3, func(j int) {
			if s.IntN(2) == 0 {
				fmt.Fprintf(&b, "backing-store %s # one\n", s.path())
				return
			}
			fmt.Fprintf(&b, "<backing-store %s>\n scsi_id %s\n scsi_sn %s\n lun %d\n block-size %d\n write-cache %s\n</backing-store>\n", s.path(), s.pick("", fmt.Sprintf("id%d%d", i, j)), s.pick("", "sn"), 5+j, s.pick2(512, 4096), s.pick("on", "off"))
		})
		s.times(3, func(int) { fmt.Fprintf(&b, "incominguser %s %s\n", s.pick("joe", "jim"), s.secret()) })
		fmt.Fprintf(&b, "outgoinguser %s %s\ninitiator-address %s\nvendor_id %s\n</target>\n", s.pick("joe", "srv"), s.secret(), s.pick("ALL", "192.0.2.1", "192.0.2.0/24", "host"), s.pick("", "ACME Corporation", "größe"))
	})
	return b.String()
}

func (s *source) gotgt() string {
	return fmt.Sprintf(`{"storages": [%s], "iscsiportals": [{"id": 0, "portal": %q}, {"id": 1, "portal": "127.0.0.9:3260"}], "iscsitargets": {%s}}`,
		s.list(3, func(i int) string {
			return fmt.Sprintf(`{"deviceID": %d, "path": "file:%s", "online": %s, "blockShift": %d}`, 1000+i, s.path(), s.pick("true", "false"), s.pick2(0, 9, 12))
		}), s.pick("127.0.0.1:3260", "0.0.0.0:3260", ":3260"),
		s.list(3, func(i int) string {
			return fmt.Sprintf(`"iqn.2026-11.test:t%d": {"tpgts": {"%d": [%d]}, "luns": {"%d": 1000, "x": 1001}}`, i, s.IntN(3), s.IntN(3), s.IntN(20000))
		}))
}

func (s *source) scst() string {
	var b strings.Builder
	fmt.Fprintf(&b, "setup_id %d\nHANDLER vdisk_fileio {\n", s.IntN(1000))
	s.times(3, func(i int) {
		fmt.Fprintf(&b, "DEVICE disk%d {\nfilename %s\n%s\nblocksize %d\nread_only %d\n}\n", i, s.path(), s.pick("", "usn x", "t10_dev_id y", fmt.Sprintf("naa_id 0x600140500000000000000000000000%02d", i)), s.pick2(512, 4096), s.IntN(2))
	})
	b.WriteString("}\nTARGET_DRIVER iscsi {\n")
	s.times(3, func(i int) {
		fmt.Fprintf(&b, "TARGET %s {\nIncomingUser \"%s %s\"\n%s\nLUN 0 disk0\nLUN %d disk1\nGROUP g {\nINITIATOR %s\nLUN 3 disk2\n}\n}\n", s.name(i), s.pick("joe", "jim"), s.secret(), s.pick("", "allowed_portal 127.0.0.1", "allowed_portal *"), s.IntN(20000), s.pick("iqn.2026-11.test:*", "!iqn.2026-11.test:h", "*"))
	})
	return b.String() + "}\n"
}

func (s *source) ctld() string {
	var b strings.Builder
	fmt.Fprintf(&b, "auth-group g {\nchap %s %s\n}\nportal-group p {\nlisten %s\ntag %d\n}\n", s.pick("joe", `"j m"`), s.secret(), s.pick("127.0.0.1", "0.0.0.0:3261", "[::]", "host"), s.IntN(3))
	s.times(3, func(i int) {
		fmt.Fprintf(&b, "target %s {\nauth-group %s\nportal-group p\n", s.name(i), s.pick("g", "no-authentication", "default"))
		s.times(3, func(j int) {
			fmt.Fprintf(&b, "lun %d { path %s blocksize %d %s option vendor \"%s\" }\n", s.IntN(5), s.path(), s.pick2(512, 4096), s.pick("", "serial \"abc\"", fmt.Sprintf("option naa 0x6589cfc00000000000000000000%02d%03d", i, j)), s.pick("X", "TrueNAS", "  "))
		})
		b.WriteString("}\n")
	})
	return b.String()
}

func (s *source) spdk() string {
	return fmt.Sprintf(`{"subsystems": [{"subsystem": "bdev", "config": [%s]}, {"subsystem": "iscsi", "config": [
		{"method": "iscsi_create_portal_group", "params": {"tag": %d, "portals": [{"host": %q, "port": "3260"}]}},
		{"method": "iscsi_create_initiator_group", "params": {"tag": 2, "initiators": [%q], "netmasks": [%q]}},
		{"method": "iscsi_create_auth_group", "params": {"tag": 1, "secrets": [{"user": %q, "secret": %q, "muser": "m", "msecret": %q}]}}, %s]}]}`,
		s.list(3, func(i int) string {
			return fmt.Sprintf(`{"method": "bdev_aio_create", "params": {"name": "Aio%d", "block_size": %d, "filename": %q}}`, i, s.pick2(512, 4096, 520), s.path())
		}), s.pick2(1, 1, 1, 2), s.pick("127.0.0.1", "0.0.0.0", "[::]"), s.pick("ANY", "iqn.2026-11.test:h", "ANY", "!x"), s.pick("ANY", "192.0.2.0/24"), s.user(), s.secret(), s.secret(),
		s.list(3, func(i int) string {
			return fmt.Sprintf(`{"method": "iscsi_create_target_node", "params": {"name": %q, "alias_name": %q, "pg_ig_maps": [{"pg_tag": 1, "ig_tag": 2}], "luns": [{"bdev_name": "Aio0", "lun_id": 0}, {"bdev_name": "Aio1", "lun_id": %d}], "queue_depth": 64, "require_chap": %s, "chap_group": 1}}`,
				s.pick("disk", s.name(i)), s.pick("", "an alias"), s.IntN(3), s.pick("true", "false"))
		}))
}
