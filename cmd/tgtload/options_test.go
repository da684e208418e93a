package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
)

func parse(t *testing.T, args ...string) (*options, error) {
	t.Helper()
	var o options
	p, err := kong.New(&o, kong.Vars{"initiator": initiator.DefaultInitiator}, kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Parse(append([]string{"--target", "iscsi://h/iqn.a/3"}, args...))
	return &o, err
}

func TestCommandLine(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a b c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := parse(t, "--bs", "4k:70,128k:30", "--rw", "randrw", "--read-percent", "30", "--size", "1G", "--offset", "1MiB",
		"--digest", "header,data", "--chap", "u", "--chap-secret-file", secret, "--mutual-chap", "m", "--mutual-chap-secret-file", secret,
		"--chap-algorithms", "7,5", "--key", "MaxBurstLength=8192", "--server-pid", "5", "--server-pid", "6")
	if err != nil {
		t.Fatal(err)
	}
	w, err := o.workload()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.narrow(&w, load.Unit{BlockSize: 4096}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(w.Sizes, w.Random, w.ReadPercent, w.FirstLBA, w.Blocks, w.ServerPIDs, w.CPU); got != "[{4096 70} {131072 30}] true 30 256 262144 [5 6] -1" {
		t.Errorf("workload %s", got)
	}
	s, err := o.session()
	if err != nil {
		t.Fatal(err)
	}
	if s.Target != "iqn.a" || o.Target.Address != "h:3260" || o.Target.LUN != 3 || s.HeaderDigest != "CRC32C" || s.DataDigest != "CRC32C" ||
		string(s.CHAP.Secret) != "a b c" || fmt.Sprint(s.CHAP.Algorithms, s.Keys) != "[7 5] [{MaxBurstLength 8192}]" || string(s.CHAP.MutualSecret) != "a b c" {
		t.Errorf("session %+v", s)
	}
}

// TestSizes: what a configuration takes, and what fio takes.
func TestSizes(t *testing.T) {
	for text, want := range map[string]size{"4KiB": 4 << 10, "4 MiB": 4 << 20, "1GiB": 1 << 30, "2TiB": 2 << 40, "0B": 0, "512": 512, "4k": 4 << 10, "1G": 1 << 30} {
		var s size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: found %d, %v, expected %d", text, s, err, want)
		}
	}
}

func TestPatternNames(t *testing.T) {
	for rw, want := range map[string]string{"read": "false 100", "write": "false 0", "rw": "false 50", "randread": "true 100", "randwrite": "true 0", "randrw": "true 50"} {
		o, err := parse(t, "--rw", rw)
		if err != nil {
			t.Fatal(err)
		}
		w, err := o.workload()
		if got := fmt.Sprint(w.Random, w.ReadPercent); err != nil || got != want {
			t.Errorf("%s: %s %v, expected %s", rw, got, err, want)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, args := range [][]string{{"--bs", "4x"}, {"--bs", "4k:x"}, {"--bs", ""}, {"--rw", "trim"}, {"--digest", "both"},
		{"--key", "novalue"}, {"--size", "99999999999t"}, {"--target", "host"}} {
		if o, err := parse(t, args...); err == nil {
			t.Errorf("%v gave %+v", args, o)
		}
	}
	o, _ := parse(t, "--connections", "0")
	if _, err := o.workload(); err == nil {
		t.Error("0 connections were accepted")
	}
	o, _ = parse(t, "--offset", "1k")
	if err := o.narrow(&load.Workload{}, load.Unit{BlockSize: 4096}); err == nil {
		t.Error("an offset of half a block was accepted")
	}
}

func TestReports(t *testing.T) {
	r := &load.Result{Seconds: 2, Reads: 20, IOPS: 10, ServerCPU: &load.CPU{PerIO: 1.25},
		Statuses: map[string]uint64{"0x08": 3}, FirstFailure: &load.Failure{Status: 8},
		Verification: &load.Verification{Checked: 5, Miscompares: 1, First: "LBA 1"}}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		o := options{JSON: asJSON}
		if err := o.report(&out, r); err == nil || !strings.Contains(err.Error(), "LBA 1") {
			t.Errorf("got %v, expected the miscompare", err)
		}
		for _, want := range []string{"1.25", "0x08", "LBA 1"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("JSON %t: no %q in\n%s", asJSON, want, out.String())
			}
		}
	}
}

// TestElsewhere: a unit is waited for that is not accessible by the path now, and no other.
func TestElsewhere(t *testing.T) {
	sense := func(key, asc, ascq byte) error {
		return &initiator.StatusError{Result: &initiator.Result{Status: 2, Sense: []byte{0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0}}}
	}
	for _, c := range []struct {
		err  error
		want bool
	}{{sense(2, 4, 0x0a), true}, {sense(2, 4, 0x0b), true}, {sense(2, 4, 0x0c), true}, {sense(2, 4, 3), false}, {sense(5, 0x20, 0), false}, {nil, false}} {
		if got := elsewhere(c.err); got != c.want {
			t.Errorf("%v: found %v, expected %v", c.err, got, c.want)
		}
	}
}
