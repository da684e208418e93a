package conf

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/scheduler"
)

// qosFile is a configuration with a qos section.
func qosFile(qos string) []byte {
	return []byte("qos:\n" + qos + `
portal-groups: {a: {}}
volumes: {v: {type: ram, size: 1GiB}}
auth-groups: {hosts: {chap: [{user: u, secret: "hidden secret"}]}}
targets: {"iqn.2026-11.example:t": {luns: {0: v}, auth-group: hosts}}
`)
}

// TestQoS: every key of the section ends where it belongs.
func TestQoS(t *testing.T) {
	c, warnings, err := Parse("qos", qosFile(`
  profile: 1500ms
  overcommit: true
  window: 16
  turn: 50us
  pool: hard
  arbitration: equal
  cost: {unit: 8KiB, write-percent: 250}
  groups: {vmware: {initiators: ["IQN.1998-01.com.vmware:*", "iqn.1998-01.com.vmware:*"]}}
  rules:
    - {name: vms, group: vmware, class: low, limit: {bandwidth: 1GiB}}
    - name: gold
      initiators: ["iqn.2026-11.example:web", "iqn.2026-11.example:DB*"]
      target: "IQN.2026-11.example:*"
      lun: 0
      reservation: 5000
      limit: {iops: 20000, bandwidth: 500MiB}
      burst: {iops: 1000, bandwidth: 8KiB}
      weight: 3
      class: urgent
`))
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	lun := uint64(0)
	want := QoS{
		Profile: 1500 * time.Millisecond, Overcommit: true, Window: 16, Turn: 50 * time.Microsecond, Pool: scheduler.HardPool, Arbitration: scheduler.EqualShare,
		Cost: scheduler.Cost{Unit: 8192, WritePercent: 250}, Network: scheduler.Network{Delay: scheduler.DefaultDelay},
		Groups: []scheduler.Group{{Name: "vmware", Initiators: []string{"iqn.1998-01.com.vmware:*"}}},
		Rules: []scheduler.Rule{{
			Name: "gold", Initiators: []string{"iqn.2026-11.example:db*", "iqn.2026-11.example:web"}, Target: "iqn.2026-11.example:*", LUN: &lun,
			Reservation: scheduler.Rate{IOPS: 5000}, Limit: scheduler.Rate{IOPS: 20000, Bytes: int64(500 * MiB)},
			Burst: scheduler.Rate{IOPS: 1000, Bytes: 8192}, Weight: 3, Class: scheduler.Urgent,
		}, {
			Name: "vms", Group: "vmware", Limit: scheduler.Rate{Bytes: int64(GiB)}, Weight: 1, Class: scheduler.Low,
		}},
	}
	if !reflect.DeepEqual(c.QoS, want) {
		t.Errorf("found    %+v\nexpected %+v", c.QoS, want)
	}
	if c, _, err := Parse("capacity", qosFile("  capacity: 50000\n  capacities: {v: 7}")); err != nil || c.QoS.Capacity != 50000 || c.QoS.Capacities["v"] != 7 {
		t.Errorf("found %+v, %v, expected the capacity", c, err)
	}
}

// TestQoSWarnings: a rule or group that nothing is subject to is told of.
func TestQoSWarnings(t *testing.T) {
	_, warnings, err := Parse("qos", qosFile(`
  groups: {idle: {initiators: ["iqn.2026-11.example:i*"]}}
  rules:
    - {name: target, initiators: ["*"], target: "iqn.2026-11.other:*"}
    - {name: lun, initiators: ["iqn.2026-11.example:*"], target: "iqn.2026-11.example:t", lun: 1}
    - {name: fine, initiators: ["iqn.2026-11.example:x"], target: "iqn.2026-11.example:?", lun: 0}
`))
	var keys []string
	for _, w := range warnings {
		keys = append(keys, w.Key)
	}
	if want := []string{"qos.groups.idle", "qos.rules[0].target", "qos.rules[1].lun"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("found %v, %v, expected %v", keys, err, want)
	}
}

// TestNormalRules: order, case and repetition make no difference, and what was
// given is not changed or shared.
func TestNormalRules(t *testing.T) {
	lun := uint64(3)
	given := []scheduler.Rule{
		{Name: "b", Initiators: []string{"iqn.B", "iqn.a", "iqn.b"}, LUN: &lun},
		{Name: "a", Group: "g", Weight: 1},
	}
	groups := []scheduler.Group{{Name: "g", Initiators: []string{"Z", "y"}}}
	rules, normal := NormalRules(given, groups)
	lun, given[0].Initiators[1] = 4, "changed"
	again, _ := NormalRules(rules, normal)
	if strings.Join(rules[1].Initiators, " ") != "iqn.a iqn.b" || *rules[1].LUN != 3 || rules[1].Weight != 1 || normal[0].Initiators[0] != "y" {
		t.Errorf("found %+v, %+v", rules, normal)
	}
	if !reflect.DeepEqual(rules, again) || given[0].Name != "b" || given[0].Initiators[0] != "iqn.B" || groups[0].Initiators[0] != "Z" {
		t.Errorf("found %+v and %+v, expected what is normal to stay and what was given not to change", again, given)
	}
	if r, g := NormalRules([]scheduler.Rule{}, nil); r != nil || g != nil {
		t.Error("found lists, expected none of nothing")
	}
}
