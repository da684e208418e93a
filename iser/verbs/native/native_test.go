package native

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"lunar/internal/rdmadev"
	"lunar/iser/verbs"
	"lunar/iser/verbs/verbstest"
)

// A host without RDMA is told what it lacks.
func TestOpenWithoutDevices(t *testing.T) {
	missing := rdmadev.Check()
	if missing == nil {
		t.Skip("this host has an RDMA device")
	}
	p, err := Open()
	if err == nil || p != nil {
		t.Fatalf("found provider %v, error %v where %v", p, err, missing)
	}
	if !Built && !errors.Is(err, ErrNotBuilt) {
		t.Errorf("found %v", err)
	}
}

// opened is the provider of the device with the address in the environment.
func opened(t testing.TB) (verbs.Provider, netip.Addr) {
	addr := os.Getenv("LUNAR_RDMA_ADDRESS")
	if addr == "" {
		t.Skip("LUNAR_RDMA_ADDRESS names no address of an RDMA device of this host")
	}
	p, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return p, netip.MustParseAddr(addr)
}

func TestVerbs(t *testing.T) {
	p, addr := opened(t)
	verbstest.Run(t, p, p, addr)
}
