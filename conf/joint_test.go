package conf

import (
	"fmt"
	"strings"
	"testing"
)

const nodesOwn = `
cluster: {name: lab, node: n1}
portal-groups: {net: {tag: 1, listen: ["127.0.0.1:3260"]}}
ceph: {main: {user: lunar}}
volumes:
  scratch: {type: ram, size: 1MiB}
qos:
  rules: [{name: mine, initiators: ["iqn.2026-11.test:m*"], limit: 100}]
targets:
  iqn.2026-11.test:own: {luns: {0: scratch}}
`

const nodesJoint = `
# of all nodes
volumes:
  db: {type: rbd, ceph: main, image: rbd/db, owners: [n1, n2]}
ceph:
  main:
    user: lunar
qos:
  overcommit: true
  rules: [{name: ours, initiators: ["*"], reservation: 100}]
targets:
  iqn.2026-11.test:db: {luns: {0: db}}
`

func jointOf(t *testing.T, text string) *Joint {
	t.Helper()
	c, err := ParseJoint("joint", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestJoint: what is joint and what is a node's own are one configuration. What both say the
// same is no mistake.
func TestJoint(t *testing.T) {
	joint := jointOf(t, nodesJoint)
	for range 2 { // it does not change
		cfg, _, err := ParseWith("own", []byte(nodesOwn), joint)
		if err != nil {
			t.Fatal(err)
		}
		if len(cfg.Volumes) != 2 || len(cfg.Targets) != 2 || len(cfg.Ceph) != 1 || len(cfg.QoS.Rules) != 2 || !cfg.QoS.Overcommit {
			t.Errorf("found %+v", cfg)
		}
	}
	var m Memory
	m.Joint = joint
	cfg, _, err := m.Parse("own", []byte(nodesOwn), nil)
	if err != nil || len(cfg.Volumes) != 2 {
		t.Errorf("found %v", err)
	}
	if cfg, _, err := ParseWith("own", []byte(nodesOwn), jointOf(t, "# nothing\n")); err != nil || len(cfg.Volumes) != 1 {
		t.Errorf("nothing in common: found %v", err)
	}
}

// TestJointMistakes: mistakes name the text in which they are.
func TestJointMistakes(t *testing.T) {
	for name, test := range map[string]struct{ own, joint, want string }{
		"differs":        {nodesOwn + "  iqn.2026-11.test:db: {luns: {0: scratch}}\n", nodesJoint, `joint:12:3: targets.?: found the key a second time, expected it once (first in line 11)`},
		"no owners":      {nodesOwn, nodesJoint + "  iqn.2026-11.test:x: {luns: {0: x}}\nvolumes2: 1\n", `joint:14:1: volumes2: found a section that is not the cluster's`},
		"of one server":  {nodesOwn, "volumes: {x: {type: ram, size: 1MiB}}\n", `joint:1:14: volumes.x.owners: found nothing in the cluster's configuration, expected the nodes`},
		"a node's":       {nodesOwn, "server: {threads: 1}\n", `joint:1:1: server: found a section that is not the cluster's`},
		"a long name":    {nodesOwn, "portal-groups: {}\n", `joint:1:1: portal-groups: found a section that is not the cluster's`},
		"unknown":        {nodesOwn, nodesJoint + "  iqn.2026-11.test:y: {luns: {0: nowhere}}\n", `joint:13:34`},
		"own is wrong":   {nodesOwn + "  iqn.2026-11.test:y: {luns: {0: nowhere}}\n", nodesJoint, `own:11:34`},
		"syntax":         {nodesOwn, "volumes: {\n", "joint:"},
		"a list":         {nodesOwn, "- 1\n", "joint: found a list"},
		"a rule twice":   {nodesOwn, "qos: {rules: [{name: mine, initiators: [\"iqn.2026-11.test:x\"]}]}\n", `qos.rules[1].name`},
		"another scalar": {nodesOwn + "discovery: {portals: all}\n", "discovery: {portals: own}\n", "joint:1:13: discovery.portals: found the key a second time, expected it once (first in line 11)"},
	} {
		t.Run(name, func(t *testing.T) {
			joint, err := ParseJoint("joint", []byte(test.joint))
			if err == nil {
				_, _, err = ParseWith("own", []byte(test.own), joint)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected %s", err, test.want)
			}
		})
	}
}

// TestBeginning: log and cluster are read of a text whose other sections may be wrong.
func TestBeginning(t *testing.T) {
	f := &File{Name: "own", Text: []byte(nodesOwn + "  wrong: {luns: {0: nowhere}}\nlog: {level: debug}\n")}
	cfg, err := f.Beginning()
	if err != nil || cfg.Cluster.Node != "n1" || cfg.Log.Level != "debug" || len(cfg.Volumes) != 0 {
		t.Errorf("found %+v, %v", cfg, err)
	}
	for text, want := range map[string]string{"log: {level: loud}": "log.level", "log: {": "YAML", "cluster: {name: x}": "cluster.node"} {
		if _, err := (&File{Name: "own", Text: []byte(text)}).Beginning(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v", text, err)
		}
	}
	if cfg, err := (&File{Text: DefaultFile}).Beginning(); err != nil || cfg.Cluster != nil {
		t.Error(fmt.Sprint(cfg), err)
	}
}
