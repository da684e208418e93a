package rbd

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
)

// Clients are a server's client instances, one of each account, and its event threads'
// ways to them. Its methods may be called by any number of goroutines.
type Clients struct {
	load func() (Library, error)
	log  *slog.Logger

	// connecting is held while a cluster is waited for. Event threads come for mu alone.
	connecting sync.Mutex

	mu struct {
		sync.Mutex
		library  Library               // nil: it was not needed yet, or could not be loaded
		all      map[Account]*instance // for who comes next
		at       map[string]*instance  // all that there are, by address
		stations map[*evloop.Loop]*station
		late     map[attempt]chan struct{} // openings that were given up, until they end
	}
}

// instance is a client in use.
type instance struct {
	Client
	account Account
	users   int // under Clients.mu
}

// NewClients makes instances as they are needed, of the library that load returns.
func NewClients(load func() (Library, error), log *slog.Logger) *Clients {
	c := &Clients{load: load, log: log}
	c.mu.all, c.mu.at, c.mu.stations = map[Account]*instance{}, map[string]*instance{}, map[*evloop.Loop]*station{}
	c.mu.late = map[attempt]chan struct{}{}
	return c
}

// attempt is an opening of an image.
type attempt struct {
	account Account
	image   Name
}

func (c *Config) attempt() attempt { return attempt{c.Account, c.Image} }

// isLate notes that an opening of an image was given up, and has not ended before over is closed.
func (c *Clients) isLate(n attempt, over chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.late[n] = over
}

// awaitLate waits until none is under way that was given up: each takes a thread, and Ceph answers
// the next one no sooner.
func (c *Clients) awaitLate(n attempt, patience time.Duration) error {
	c.mu.Lock()
	over := c.mu.late[n]
	c.mu.Unlock()
	if over == nil {
		return nil
	}
	select {
	case <-over:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.mu.late[n] == over {
			delete(c.mu.late, n)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("an earlier opening has not ended within %v", patience)
	}
}

// acquire returns the instance of an account, which release gives back.
func (c *Clients) acquire(a Account, patience time.Duration) (*instance, error) {
	if i := c.known(a); i != nil {
		return i, nil
	}
	c.connecting.Lock()
	defer c.connecting.Unlock()
	if i := c.known(a); i != nil {
		return i, nil
	}
	library, err := c.loaded()
	if err != nil {
		return nil, err
	}
	i, err := c.connect(library, a, patience)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.all[a], c.mu.at[i.Address()] = i, i
	return i, nil
}

// acquireAt is acquire of the instance that has an address: it is there because somebody stays.
func (c *Clients) acquireAt(address string) (*instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.mu.at[address]
	if i == nil {
		return nil, fmt.Errorf("found no instance %s any more, with which it was claimed", address)
	}
	i.users++
	return i, nil
}

// known returns the instance of an account for one user more, nil: there is none.
func (c *Clients) known(a Account) *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.mu.all[a]
	if i != nil {
		i.users++
	}
	return i
}

// Lacks is what keeps this machine from connecting with an account, as far as that is known without
// asking its cluster: the library, or a file of the account. Who is connected lacks nothing.
func (c *Clients) Lacks(a Account) error {
	c.mu.Lock()
	connected := c.mu.all[a] != nil
	c.mu.Unlock()
	if connected {
		return nil
	}
	library, err := c.loaded()
	if err != nil {
		return err
	}
	return library.Lacks(a)
}

// loaded returns the library.
func (c *Clients) loaded() (Library, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.library == nil {
		library, err := c.load()
		if err != nil {
			return nil, err
		}
		c.mu.library = library
	}
	return c.mu.library, nil
}

// connect makes an instance, for one user.
func (c *Clients) connect(library Library, a Account, patience time.Duration) (*instance, error) {
	client, err := within(patience, func() (Client, error) { return library.Connect(a) }, func(late Client, err error) {
		if err == nil {
			_ = late.Close() // nobody is left to be told
		}
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the Ceph cluster of %s as client.%s: %w", a.Config, a.User, err)
	}
	c.log.Info("connected to a Ceph cluster", "config", a.Config, "user", "client."+a.User, "cluster", client.Cluster(), "instance", client.Address())
	return &instance{Client: client, account: a, users: 1}, nil
}

// release ends an instance that nobody uses any more.
func (c *Clients) release(i *instance, patience time.Duration) error {
	c.mu.Lock()
	i.users--
	last := i.users == 0
	if last && c.mu.all[i.account] == i {
		delete(c.mu.all, i.account)
	}
	if last {
		delete(c.mu.at, i.Address())
	}
	c.mu.Unlock()
	if !last {
		return nil
	}
	_, err := within(patience, func() (struct{}, error) { return struct{}{}, i.Close() }, func(struct{}, error) {})
	return err
}

// Stay keeps an instance of an account connected that has none of some addresses, for who
// wants to know its address before an image is open, until leave is called.
func (c *Clients) Stay(a Account, but []string, patience time.Duration) (address string, leave func() error, err error) {
	i, err := c.acquire(a, patience)
	if err == nil && slices.ContainsFunc(but, func(o string) bool { return sameInstance(o, i.Address()) }) {
		c.banish(i)
		if err = c.release(i, patience); err == nil {
			i, err = c.acquire(a, patience)
		}
	}
	if err != nil {
		return "", nil, err
	}
	return i.Address(), sync.OnceValue(func() error { return c.release(i, patience) }), nil
}

// Refused reports whether the cluster refuses the instance with an address, at which somebody stays,
// as far as is known: it is of no use for what is opened next. Any goroutine may call it.
func (c *Clients) Refused(address string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.mu.at[address]
	return i != nil && c.mu.all[i.account] != i
}

// Fence has the cluster of an account refuse all that other instances ask for from now on,
// by their addresses. An own one is left alone.
func (c *Clients) Fence(a Account, addresses []string, patience time.Duration) error {
	i, err := c.acquire(a, patience)
	if err != nil {
		return err
	}
	_, err = within(patience, func() (struct{}, error) { return struct{}{}, i.fence(addresses) }, func(struct{}, error) {
		_ = c.release(i, patience) // nobody is left to be told
	})
	switch {
	case errors.Is(err, ErrLate):
		return err // the instance is in use until that ends
	case errors.Is(err, unix.ESHUTDOWN): // it is fenced itself
		c.banish(i)
	}
	return errors.Join(err, c.release(i, patience))
}

func (i *instance) fence(addresses []string) error {
	for _, a := range addresses {
		if sameInstance(a, i.Address()) {
			continue
		}
		if err := i.Fence(bare(a)); err != nil {
			return fmt.Errorf("fence %s (caps mon 'profile rbd' are needed): %w", a, err)
		}
	}
	return nil
}

// banish has who comes next connect anew: the cluster refuses this instance for good.
func (c *Clients) banish(i *instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.all[i.account] == i {
		delete(c.mu.all, i.account)
	}
}

// join returns the station of the thread that it is called on.
func (c *Clients) join(loop *evloop.Loop) (*station, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stations[loop]
	if s == nil {
		queue, err := c.mu.library.Queue()
		if err == nil {
			s, err = newStation(loop, queue)
		}
		if err != nil {
			return nil, err
		}
		c.mu.stations[loop] = s
	}
	s.lanes++
	return s, nil
}

// leave undoes join.
func (c *Clients) leave(s *station) {
	if s.lanes--; s.lanes > 0 {
		return
	}
	c.mu.Lock()
	delete(c.mu.stations, s.loop)
	c.mu.Unlock()
	s.close()
}

// ErrLate is in the error of what a cluster has not answered in time. It may still happen.
var ErrLate = errors.New("the cluster does not answer")

// within calls f and waits for it for some time. What it returns later goes to late, on another
// goroutine; nil: to nobody.
func within[T any](patience time.Duration, f func() (T, error), late func(T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	came, gone := make(chan answer, 1), false
	var mu sync.Mutex // of gone, and of sending
	go func() {
		v, err := f()
		mu.Lock()
		waited := !gone
		if waited {
			came <- answer{v, err}
		}
		mu.Unlock()
		if !waited && late != nil {
			late(v, err)
		}
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-came:
		return a.value, a.err
	case <-timer.C:
	}
	mu.Lock()
	defer mu.Unlock()
	select {
	case a := <-came: // in the last moment
		return a.value, a.err
	default:
	}
	gone = true
	var none T
	return none, fmt.Errorf("%w within %v", ErrLate, patience)
}
