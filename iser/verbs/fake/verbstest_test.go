package fake_test

import (
	"fmt"
	"net/netip"
	"testing"

	"lunar/iser/verbs/fake"
	"lunar/iser/verbs/verbstest"
)

func TestVerbs(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.1")
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := fake.New(t, fake.Options{Seed: seed})
			target := f.Host("target", false, fake.DeviceOptions{Name: "rxe0", Addr: addr})
			initiator := f.Host("initiator", true, fake.DeviceOptions{Name: "rxe1", Addr: addr.Next()})
			verbstest.Run(t, target, initiator, addr)
		})
	}
}
