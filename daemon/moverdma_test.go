package daemon

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

// TestMoveOverRDMA: an address of both sides has a volume go over RDMA; without a device the
// commands say so.
func TestMoveOverRDMA(t *testing.T) {
	open := openRDMA
	t.Cleanup(func() { openRDMA = open })
	fabric := fake.New(t, fake.Options{})
	hosts := []verbs.Provider{ // in the order in which they are wanted
		fabric.Host("to", false, fake.DeviceOptions{Name: "rxe1", Addr: netip.MustParseAddr("10.0.0.2")}),
		fabric.Host("from", false, fake.DeviceOptions{Name: "rxe0", Addr: netip.MustParseAddr("10.0.0.1")}),
	}
	openRDMA = func() (h verbs.Provider, err error) {
		if len(hosts) == 0 {
			return nil, errors.New("this host has none")
		}
		h, hosts = hosts[0], hosts[1:]
		return h, nil
	}
	from, to := newEndpoint(t, ""), newEndpoint(t, "")
	from.filled()
	key := filepath.Join(from.dir, "key")
	to.at = "rdma://10.0.0.2:3262"
	job := to.receiving(key)
	if out, status := from.lunar("volume", "send", "disk", "rdma://10.0.0.2", "--key-file", key); status != cli.ExitOK {
		t.Fatalf("found %d, %q", status, out)
	}
	to.waited(job, "done")
	sum, _ := from.lunar("volume", "checksum", "disk")
	if out, status := to.lunar("volume", "checksum", "copy", "--expect", strings.TrimSpace(sum)); status != cli.ExitOK {
		t.Errorf("found %d, %q", status, out)
	}
	if out, status := from.lunar("volume", "send", "disk", "rdma://10.0.0.2", "--key-file", key); status == cli.ExitOK || !strings.Contains(out, "this host has none") {
		t.Errorf("found %d, %q", status, out)
	}
}
