package volumes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/rbd"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/target/scsi"
)

// since is the origin of a monotonic clock.
var since = time.Now()

// quiesceTime is how long commands that have begun may take to end before a volume is given
// to another server. Those that take longer, since their initiators do not send their data,
// end with ASYMMETRIC ACCESS STATE TRANSITION.
const quiesceTime = 2 * time.Second

// openShared makes a logical unit of a volume whose image this server does not have yet.
func (a *Set) openShared(v *conf.Volume) (*scsi.LogicalUnit, error) {
	cfg := a.Conf
	if a.Next != nil {
		cfg = a.Next
	}
	s := &Shared{set: a, volume: *v, failing: &deferral{}}
	s.encryption.Store(v.Encryption)
	var err error
	if s.image, err = ImageConfig(cfg, v); err != nil {
		return nil, err
	}
	s.image.Clients, s.image.Server, s.image.Logger = a.Ceph, a.Cluster.Identity+"/"+a.Cluster.Node, a.Log.With("volume", v.Name)
	s.image.Before = a.meeting(v, sighting{})
	s.answers = a.Cluster.answersOf(a.Ceph, &s.image)
	if resized := a.Resized; resized != nil {
		s.image.Resized = func() { resized(v.Name) }
	}
	s.slot = backstore.NewSlot(newAbsent(s.looks(int64(v.BlockSize)))) // until its size is known
	settings := SettingsOf(cfg, v)
	s.unit, err = scsi.NewLogicalUnit(scsi.LUConfig{
		Name: v.Name, Store: s.slot, Device: medium.DeviceOf(v), BlockSize: v.BlockSize, Shared: true,
		Vendor: v.Vendor, Product: v.Product, Revision: v.Revision,
		Serial: SerialOf(v, a.Cluster.Identity), NAA: a.sharedNAA(v), Designators: designatorsOf(v),
		WriteThrough: settings.WriteThrough, GroupNumbers: settings.GroupNumbers, PhysicalBlock: settings.PhysicalBlock,
		Removable: v.Removable, SanitizeRate: settings.SanitizeRate, Logger: a.Log, Refusals: a.Refusals,
		SaveHeritage: s.saveHeritage,
		Access:       map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Transitioning}},
	})
	if err != nil {
		return nil, err
	}
	s.failing.bind(s.unit)
	a.Open[v.Name] = &Volume{Unit: s.unit, Slot: s.slot, Shared: s}
	a.Health.Serves(v.Name, s.slot)
	a.shared.Store(v.Name, s)
	return s.unit, nil
}

// sharedNAA is that of a shared volume on all servers.
func (a *Set) sharedNAA(v *conf.Volume) []byte {
	if v.NAA != "" || v.Serial != "" {
		return a.naaOf(v)
	}
	return registeredExtended(SerialOf(v, a.Cluster.Identity))
}

// Connect gets an instance of Ceph for the volume that is none of those to be fenced, and
// returns its address.
func (s *Shared) Connect(ctx context.Context, fenced []string) (address string, err error) {
	address, leave, err := s.set.Ceph.Stay(s.image.Account, fenced, patienceOf(ctx))
	if err != nil {
		return "", err
	}
	err = s.disconnect()
	s.leave = leave
	if err != nil {
		s.image.Logger.Warn("an instance that the volume has no more use for", "err", err)
	}
	return address, nil
}

func (s *Shared) disconnect() (err error) {
	if s.leave != nil {
		err, s.leave = s.leave(), nil
	}
	return err
}

// Silent returns the pool that the image is in, and since when it does not answer this server;
// zero: it does. last is when it has answered last. Any goroutine may call it.
func (s *Shared) Silent() (pool string, since, last time.Time) { return s.answers.Silent() }

// Refused reports whether Ceph is known to refuse an instance that Connect has returned. Any
// goroutine may call it.
func (s *Shared) Refused(address string) bool { return s.set.Ceph.Refused(address) }

// Fence keeps other servers' instances from writing.
func (s *Shared) Fence(ctx context.Context, instances []string) error {
	return s.set.Ceph.Fence(s.image.Account, instances, patienceOf(ctx))
}

// Claim is what an image is opened by.
type Claim struct {
	Epoch    uint64   // later claims have higher ones
	Instance string   // that Connect has returned
	Fenced   []string // instances that had earlier claims
}

// Opened is an image that was opened.
type Opened struct {
	Address   string // of the instance that has its lock
	Size      int64  // bytes
	BlockSize int    // of the logical unit, in bytes
}

// Open opens the image, and breaks the lock of instances that are fenced, but of no other. It
// fails if the image was open for a later claim. If late is true, it may be opened still.
func (s *Shared) Open(ctx context.Context, claim Claim) (o Opened, late bool, err error) {
	if err := s.Close(ctx); err != nil { // what an earlier Close has left
		return o, false, err
	}
	left, tenure, err := s.inherit(ctx, claim.Epoch)
	if err != nil {
		return o, false, err
	}
	c := s.image
	c.Epoch, c.Instance, c.Superseded, c.Patience = claim.Epoch, claim.Instance, claim.Fenced, patienceOf(ctx)
	c.Lost = func(error) { s.set.Cluster.Lost(s.volume.Name, claim.Epoch) }
	c.Fresh = func(header string) error {
		if err := s.disown(tenure, header); err != nil || tenure.brought {
			return err
		}
		left = nil
		return nil
	}
	image, store, err := s.open(c, tenure)
	if err == nil {
		err = s.slot.Exchange(ctx, func(backstore.Store) (backstore.Store, error) {
			s.opening = c
			return store, nil
		})
		if err != nil {
			err = errors.Join(err, store.Close())
		}
	}
	if err != nil {
		s.cipher.Store(nil)
		tenure.end()
		return o, errors.Is(err, rbd.ErrLate), err
	}
	s.opened(image, store)
	s.succeed(tenure, left)
	return Opened{image.Address(), image.Info().Size, s.volume.BlockSize}, false, nil
}

// open opens the image for a tenure, with encryption and the cache around it.
func (s *Shared) open(c rbd.Config, t *tenure) (image *rbd.Store, store backstore.Store, err error) {
	if image, err = rbd.Open(c); err != nil {
		return nil, nil, err
	}
	if err = s.fits(image); err != nil {
		return nil, nil, errors.Join(err, image.Close())
	}
	if store, err = s.encipher(image, t.seal); err == nil {
		store, err = s.cached(store)
	}
	return image, store, err
}

// looks is what the volume is like with so many bytes, on all servers.
func (s *Shared) looks(size int64) backstore.Info {
	info := rbd.Describe(s.image.Image, size)
	if s.encryption.Load() != nil {
		info = crypt.Describe(info, s.volume.BlockSize)
	}
	return info
}

// opened tells others of what the slot has now.
func (s *Shared) opened(image *rbd.Store, store backstore.Store) {
	s.set.Health.opened(s.volume.Name, image, inCache(store))
	s.unit.Remeasure()
}

// fits refuses an image of which servers that do not have it open say something else.
func (s *Shared) fits(image *rbd.Store) error {
	info := image.Info()
	if info != rbd.Describe(s.image.Image, info.Size) {
		return fmt.Errorf("found an image that is striped in units of less than 16 KiB, expected one without: a volume with owners has to look the same on all nodes")
	}
	return nil
}

// cached puts a store behind the cache; it owns the store, also on failure.
func (s *Shared) cached(image backstore.Store) (backstore.Store, error) {
	a, v := s.set, &s.volume
	if v.Cache == nil || a.Cache == nil || !a.Cluster.Cached {
		return image, nil
	}
	c := a.cacheConfig(v, sighting{}, s.failing)
	c.Lapsed = s.lapsed
	return a.wrap(image, c)
}

// inCache is a store that is behind the cache; nil: it is not.
func inCache(store backstore.Store) backstore.Store {
	if _, cached := store.(tier.Changeable); cached {
		return store
	}
	return nil
}

// lapsed reports that it is not known any more whether what is cached is the newest. It is
// called on event threads.
func (s *Shared) lapsed() bool { return int64(time.Since(since)) >= s.trusted.Load() }

// Trust lets cached data be served until a moment, and none behind it.
func (s *Shared) Trust(until time.Time) {
	if until.IsZero() {
		s.trusted.Store(0)
		return
	}
	s.trusted.Store(int64(until.Sub(since)))
}

// Cached reports whether Open puts the image behind the cache.
func (s *Shared) Cached() bool {
	return s.volume.Cache != nil && s.set.Cache != nil && s.set.Cluster.Cached
}

// Close ends what is under way, and gives the image back. After an error it may be open.
func (s *Shared) Close(ctx context.Context) error {
	if s.closed() {
		return nil
	}
	quiet, cancel := context.WithTimeout(ctx, quiesceTime)
	defer cancel()
	if err := s.unit.Quiesce(quiet); err != nil {
		s.image.Logger.Warn("commands of the volume have not ended; they end as it goes to another server", "after", quiesceTime)
	}
	s.resign()
	return s.slot.Exchange(ctx, func(store backstore.Store) (backstore.Store, error) {
		err := store.Close()
		if err != nil {
			err = fmt.Errorf("close %s: %w", store.Info().Describe, err)
		}
		s.set.Health.opened(s.volume.Name, nil, nil)
		s.cipher.Store(nil)
		return newAbsent(s.looks(store.Info().Size)), err
	})
}

func (s *Shared) closed() bool {
	_, closed := s.slot.Content().(*absent)
	return closed
}

// Serve answers commands as the volume's owner.
func (s *Shared) Serve() { s.settle(s.set.Cluster.Node, nil) }

// Standby lets another server answer commands, which owns the volume, of so many bytes, since
// an epoch.
func (s *Shared) Standby(owner string, epoch uint64, size int64) {
	s.learn(size)
	s.settle(owner, s.set.Cluster.Relay(owner, epoch))
}

// learn notes the size that a volume has elsewhere; 0: it is not known.
func (s *Shared) learn(size int64) {
	if store, ok := s.slot.Content().(*absent); ok && size > 0 {
		store.size.Store(size)
		s.unit.Remeasure()
	}
}

// Hold lets commands wait until Serve or Standby. size is the last that is known.
func (s *Shared) Hold(size int64) {
	s.learn(size)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner = ""
	s.unit.Hold(s.set.Cluster.Hold)
}

func (s *Shared) settle(owner string, elsewhere scsi.Carrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner, s.elsewhere = owner, elsewhere
	s.unit.Settle(s.set.Cluster.Access(owner), elsewhere)
}

// Refresh tells initiators how the volume is reached when portal groups have come or gone.
// Any goroutine may call it.
func (s *Shared) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != "" {
		s.unit.Settle(s.set.Cluster.Access(s.owner), s.elsewhere)
	}
}

// Size is that of the volume in bytes, as far as it is known. Any goroutine may call it.
func (s *Shared) Size() int64 { return s.slot.Info().Size }

// Owner is the node that serves the volume; empty: it is not decided. Any goroutine may call
// it.
func (s *Shared) Owner() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner
}

// Unit is the logical unit. Any goroutine may call it.
func (s *Shared) Unit() *scsi.LogicalUnit { return s.unit }

// End gives up the instance of Ceph, when the image is closed for good, and lets commands go
// on that have waited: they end as in transition.
func (s *Shared) End() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner == "" {
		s.unit.Settle(map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Transitioning}}, nil)
	}
	return s.disconnect()
}

// Shared are the volumes that several servers present. Any goroutine may call it.
func (a *Set) Shared() (all []*Shared) {
	a.shared.Range(func(_, s any) bool {
		all = append(all, s.(*Shared))
		return true
	})
	return all
}

// SharedOf is that of a name; nil: there is none. Any goroutine may call it.
func (a *Set) SharedOf(volume string) *Shared {
	s, ok := a.shared.Load(volume)
	if !ok {
		return nil
	}
	return s.(*Shared)
}

// Unshare forgets a shared volume that is closed.
func (a *Set) Unshare(volume string) { a.shared.Delete(volume) }

// patienceOf is how long a cluster may take that is asked within a context.
func patienceOf(ctx context.Context) time.Duration {
	const otherwise = 30 * time.Second
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end), time.Millisecond)
	}
	return otherwise
}
