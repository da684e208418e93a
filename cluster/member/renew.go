package member

import (
	"crypto/x509"
	"fmt"
	"time"

	"lunar/internal/durable"
)

// Renew makes another certificate for the node's key when a third of the time of the one that
// it has is left, or less, or that time has not begun: it was made while the clock was wrong. etcd
// and this package read it again for each connection. One that lasts for longer than Renew gives
// them, as earlier versions made, stays.
func (d Dir) Renew(now time.Time) error {
	own, err := d.certificate()
	if err != nil {
		return err
	}
	if own.Leaf.NotAfter.Sub(now) > nodeTime/3 && !own.Leaf.NotBefore.After(now) {
		return nil
	}
	return d.renew(own.Leaf, now)
}

func (d Dir) renew(was *x509.Certificate, now time.Time) error {
	a, err := d.authority()
	if err != nil {
		return err
	}
	if a.cert.NotBefore.After(now) {
		return nil // nothing is known of the time
	}
	if !a.cert.NotAfter.After(now) {
		return fmt.Errorf("%s: the cluster's authority was valid until %v: make a new cluster's etcd, as for a lost majority", d.path(authorityFile), a.cert.NotAfter)
	}
	s, err := d.Settings()
	if err != nil {
		return err
	}
	text, err := a.issue(s.Node, was.PublicKey, now)
	if err != nil {
		return err
	}
	return durable.Replace(d.path(ownFile), text)
}
