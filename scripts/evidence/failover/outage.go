package main

import (
	"context"
	"fmt"
	"time"

	"lunar/control"
	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

// settled is how long the cache is looked at before an outage of etcd, and after it.
const settled = 20 * time.Second

// outage leaves the owner without the state, and counts what its cache answers: all of it before,
// nothing once the lease has lapsed, and again afterwards.
func (s *scene) outage(at *site.Site) error {
	owner, err := at.Owner()
	if err != nil {
		return err
	}
	api, err := control.Dial(owner.Socket())
	if err != nil {
		return err
	}
	defer api.Close()
	hits := func(what func() error) (uint64, error) {
		before, err := api.Status(context.Background())
		if err == nil {
			err = what()
		}
		if err != nil {
			return 0, err
		}
		after, err := api.Status(context.Background())
		if err != nil {
			return 0, err
		}
		return after.Cache.Hits - before.Cache.Hits, nil
	}
	rest := func() error { time.Sleep(settled); return nil }
	before, err := hits(rest)
	if err != nil {
		return err
	}
	var during uint64
	if err := at.WithoutQuorum(func() (err error) {
		time.Sleep(settled) // the lease lapses
		during, err = hits(func() error { time.Sleep(s.Outage - settled); return nil })
		return err
	}); err != nil {
		return err
	}
	after, err := hits(rest)
	if err != nil {
		return err
	}
	s.found = append(s.found, notes.Found(fmt.Sprintf("hits of the owner's cache in %v before, in %v without etcd, in %v afterwards", settled, s.Outage-settled, settled),
		fmt.Sprintf("%d, %d, %d", before, during, after), before > 0 && during == 0 && after > 0))
	return nil
}
