package main

import "slices"

// contender is one of those that a comparison measures in turns: a server's
// volume, or a tool that is measured itself.
type contender struct {
	name   string
	server *server
	volume int
	tool   *tool  // instead of the workload's
	back   bool   // it writes later what it was given: the next one waits for that
	absent string // why it is not there
}

// Names in tables.
const (
	echoName    = "echo in C"
	ringName    = "echo with io_uring"
	spdkName    = "SPDK"
	tgtName     = "C tgt"
	fioName     = "fio"
	lunarName   = "Lunar"
	lunarRAM    = "Lunar, ram"
	lunarCached = "Lunar, cache"
	lunarAsleep = "Lunar, poll: off"
)

// comparison is a table: workloads, and those that carry them.
type comparison struct {
	workloads []workload
	ours      []string // that are judged
	peers     []string // that they are judged by
	beside    []string // that are shown
	// enough are parts of a peer's rate that suffice, whatever a workload's goal says of SPDK's.
	enough map[string]float64
}

// field are all those that are started, or the reasons why not.
type field struct {
	contenders []contender
	stops      []func()
}

func (f *field) stop() {
	for _, stop := range slices.Backward(f.stops) {
		stop()
	}
}

// enter adds a server's volumes; an error is the reason for their absence.
func (f *field) enter(s *server, err error, volumes ...contender) {
	if s != nil {
		f.stops = append(f.stops, s.stop)
	}
	for _, c := range volumes {
		if c.server = s; err != nil {
			c.server, c.absent = nil, err.Error()
		}
		f.contenders = append(f.contenders, c)
	}
}

// named are the contenders of a comparison, in its order.
func (f *field) named(names ...string) (list []contender) {
	for _, name := range names {
		i := slices.IndexFunc(f.contenders, func(c contender) bool { return c.name == name })
		list = append(list, f.contenders[i])
	}
	return list
}
