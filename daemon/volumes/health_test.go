package volumes

import (
	"errors"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/memstore"
	"lunar/cache/tier"
	"lunar/control"
)

// TestHealthFull: a file system without space is told of a volume whose file needs some.
func TestHealthFull(t *testing.T) {
	store, err := memstore.New(memstore.Config{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h := newHealth()
	h.Serves("v", backstore.NewSlot(store))
	for _, test := range []struct {
		space *control.Space
		state string
	}{
		{nil, control.HealthOK},
		{&control.Space{Free: 0, Size: 1 << 30}, control.HealthOK}, // it has all that it needs
		{&control.Space{Free: 1 << 30, Size: 1 << 31, Unallocated: 1 << 20}, control.HealthOK},
		{&control.Space{Free: 4096, Size: 1 << 30, Unallocated: 1 << 20}, control.HealthDegraded},
	} {
		h.of("v").space = test.space
		if told := h.Judge("v", &tier.Snapshot{}, time.Now()); told.State != test.state {
			t.Errorf("%+v: found %+v, expected %s", test.space, told, test.state)
		}
	}
}

// TestHealthKept: what cannot be saved of a volume is told, until it can; beside what is
// worse it makes nothing better.
func TestHealthKept(t *testing.T) {
	h := newHealth()
	full := errors.New("no space left on device")
	save := keeping(h, "v", "reservations", func(err error) error { return err })
	store, err := memstore.New(memstore.Config{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h.Serves("v", backstore.NewSlot(store))
	cut := []backstore.Trouble{{Failed: true, What: "cut"}}
	for _, test := range []struct {
		found []backstore.Trouble
		err   error
		state string
	}{{nil, nil, control.HealthOK}, {nil, full, control.HealthDegraded}, {cut, full, control.HealthFailed}, {nil, nil, control.HealthOK}} {
		h.of("v").found = test.found
		if err := save(test.err); err != test.err {
			t.Errorf("found %v", err)
		}
		told := h.Judge("v", &tier.Snapshot{}, time.Now())
		if told.State != test.state || test.err != nil && told.Troubles[len(test.found)].What != "reservations cannot be saved: no space left on device" {
			t.Errorf("found %+v, expected %s", told, test.state)
		}
	}
}
