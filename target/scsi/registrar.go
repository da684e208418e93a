package scsi

import (
	"sync"
	"time"

	"lunar/target/scsi/sense"
)

// registrar carries out what changes the reservations of a logical unit, sets its
// identifying information or asks its disk for the temperature, one
// after the other in the order of arrival, on a goroutine that lives while there
// is something to do: what is to survive a loss of power, or of the server, has to be
// stable first, which blocks. The commands that wait bound its queue.
type registrar struct {
	mu struct {
		sync.Mutex
		queue   []func()
		running bool
		began   time.Time // when it began what it does now
	}
}

// registrarPatience is how long the registrar of a unit that several servers present may be
// with one thing before initiators are told to come again, rather than wait for it in line.
const registrarPatience = 2 * time.Second

// stuck reports that it has been with one thing for long.
func (r *registrar) stuck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.running && time.Since(r.mu.began) > registrarPatience
}

func (r *registrar) do(work func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.queue = append(r.mu.queue, work)
	if !r.mu.running {
		r.mu.running, r.mu.began = true, time.Now()
		go r.run()
	}
}

func (r *registrar) run() {
	for work := r.next(); work != nil; work = r.next() {
		work()
	}
}

// next returns nil, and the goroutine is to end, when there is nothing to do.
func (r *registrar) next() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.queue) == 0 {
		r.mu.queue, r.mu.running = nil, false
		return nil
	}
	work := r.mu.queue[0]
	r.mu.queue, r.mu.began = r.mu.queue[1:], time.Now()
	return work
}

// outcome ends a command on its event thread.
type outcome func(*Command)

func conflict(c *Command) { c.FailStatus(ReservationConflict) }

func failure(s *sense.Data) outcome { return func(c *Command) { c.Fail(s) } }

// register has the registrar do work for the command, which then ends as
// work's outcome says; nil: work has seen to it that conclude is called. A
// panic in work is one of the command.
func (c *Command) register(work func() outcome) {
	lu := c.Nexus.LU
	if lu.config.SaveHeritage != nil && lu.registrar.stuck() {
		c.FailStatus(Busy)
		return
	}
	c.running++
	lu.registrar.do(func() {
		defer func() {
			if p := recover(); p != nil {
				c.conclude(func(*Command) { panic(p) })
			}
		}()
		if end := work(); end != nil {
			c.conclude(end)
		}
	})
}

// conclude ends a command that the registrar had, from any goroutine.
func (c *Command) conclude(end outcome) { c.Port.Wake(c, conclusion{c, end}) }

type conclusion struct {
	*Command
	end outcome
}

// Run implements Task.
func (c conclusion) Run() {
	c.running--
	if c.ending { // aborted meanwhile
		c.settle()
		return
	}
	c.end(c.Command)
}
