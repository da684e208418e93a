package nest

import (
	"lunar/scheduler"
	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// command is the payload of a request without data, or of a response without: with its
// header 128 bytes on the wire.
const command = 88

// Request is what a host asks a storage server.
type Request struct {
	scheduler.Task // of the gate; Owner is the request
	Tag            Tag
	Write          bool
	Bytes          int64
	Block          uint64          // what the cache knows it by
	At             int64           // when it was asked
	Done           func(now int64) // called when the response has arrived

	path *Path
}

// Path is a connection of a host with a storage server: what carries requests there and
// responses back.
type Path struct {
	there, back *net.Flow
	server      *Server
	number      int // of the connection at its server
}

// Transport makes the control of a flow of a class; toHost is its direction.
type Transport func(t Tag, toHost bool) net.Control

// Connect opens a connection of a class.
func (f *Fabric) Connect(t Tag, make Transport, host int, s *Server) *Path {
	there, back := f.Path(host, s.at), f.Path(s.at, host)
	p := &Path{
		there:  net.NewFlow(f.kernel, make(t, false), there, f.back(there)),
		back:   net.NewFlow(f.kernel, make(t, true), back, f.back(back)),
		server: s,
		number: s.paths,
	}
	p.there.Urgent, p.back.Urgent = t == Urgent, t == Urgent
	s.paths++
	return p
}

// Ask sends a request. What follows its end is Done.
func (p *Path) Ask(r *Request) {
	r.At, r.path = p.server.kernel.Now(), p
	bytes := int64(command)
	if r.Write {
		bytes = r.Bytes
	}
	p.there.Send(&net.Message{Bytes: bytes, Done: func(int64) { p.server.arrive(r) }})
}

// answer sends a response.
func (r *Request) answer() {
	bytes := int64(command)
	if !r.Write {
		bytes = r.Bytes
	}
	r.path.back.Send(&net.Message{Bytes: bytes, Done: r.Done})
}

// classOf is the class of a governed tag.
func classOf(t Tag) qtcp.Class { return qtcp.Class(t - High) }

// Server is a storage server: its event thread, the stages of a request and its device.
type Server struct {
	kernel *kernel.Kernel
	at     int // in the fabric
	device Device
	thread *kernel.Station
	cost   int64 // ps of the thread for a request, and again for its response
	paths  int

	gate  *gate    // nil lets all pass
	cache *cached  // nil has nothing
	batch *batched // nil sends each response by itself
}

// NewServer returns a server at a place of a fabric, whose thread needs cost ps for a
// request and as much for a response.
func (f *Fabric) NewServer(at int, d Device, cost int64) *Server {
	return &Server{kernel: f.kernel, at: at, device: d, thread: kernel.NewStation(f.kernel), cost: cost}
}

// work has the thread do what takes cost ps.
func (s *Server) work(do func()) {
	if s.cost == 0 {
		do()
		return
	}
	s.thread.Serve(s.cost, do)
}

// arrive takes a request from the network: it wakes the thread.
func (s *Server) arrive(r *Request) {
	s.work(func() {
		if s.gate == nil || s.gate.admit(r) {
			s.execute(r)
		}
	})
}

// execute serves a request from the cache, or has the device do it.
func (s *Server) execute(r *Request) {
	if s.cache != nil && s.cache.hit(r) {
		s.executed(r)
		return
	}
	s.device.Submit(&Command{Tag: r.Tag, Write: r.Write, Bytes: r.Bytes, Done: func(int64) { s.executed(r) }})
}

// executed answers a request, at once or with others.
func (s *Server) executed(r *Request) {
	s.work(func() {
		if s.gate != nil {
			s.gate.done(r)
		}
		if s.batch != nil {
			s.batch.add(r)
			return
		}
		r.answer()
	})
}
