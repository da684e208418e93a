package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/control/events"
	"lunar/control/server"
	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/confine"
	"lunar/internal/systemd"
	"lunar/internal/version"
)

// Serve serves until stop is closed, reads the configuration again at each hangup, and
// returns nil if everything that was acknowledged is stable. A start that fails leaves no
// file that it made.
func (k Options) Serve(c cli.Console, stop, hangups <-chan struct{}) (err error) {
	if k.Alone {
		_ = confine.CoreDumps(false) // before there is a secret; confineProcess tells if that fails
	}
	dir, err := conf.StateDir(k.StateDir)
	if err != nil {
		return err
	}
	was := lookBefore(dir)
	if err := state.Make(dir); err != nil {
		return errors.Join(err, was.restore())
	}
	held, err := state.Take(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	started, err := k.serve(c, dir, was, stop, hangups)
	if !started {
		err = errors.Join(err, was.restore())
	}
	return err
}

// serve serves the state directory. A start that failed, and of which nothing is open
// any more, is none.
func (k Options) serve(c cli.Console, dir string, was *before, stop, hangups <-chan struct{}) (started bool, err error) {
	file, err := conf.Open(k.Config)
	if err != nil {
		return false, conf.Reported(err)
	}
	begins, err := file.Beginning()
	if err != nil {
		_, err = k.parse(file, dir, nil) // which tells all that is wrong
		return false, conf.Reported(err)
	}
	begins.Log.Level = cmp.Or(k.LogLevel, begins.Log.Level)
	log, output := newLogger(c.Err, systemd.IsJournal(c.Err), begins.Log)
	stream := events.New(time.Now())
	log = slog.New(events.Tee(log.Handler(), stream))
	member, err := enterCluster(begins.Cluster, dir, log)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, member.unlink(), member.close()) }()
	l, err := k.parseAs(member, file, dir)
	if err != nil {
		return false, conf.Reported(err)
	}
	cfg := l.Config
	was.look(cfg)
	output.set(cfg.Log)
	for _, w := range l.warnings {
		log.Warn("configuration", "at", w.String())
	}
	for _, what := range doubtful(cfg) {
		log.Warn("others may change a file of the server", "what", what)
	}
	if k, err = k.pending(dir, l.text); err != nil {
		return false, err
	}
	start, err := k.compare(cfg, dir, member, func(what string) { log.Warn("other than at the last start", "what", what) })
	if err != nil {
		return false, err
	}
	known := marks(dir, cfg)
	s, err := start.assemble(cfg, dir, log)
	if err != nil {
		return false, err
	}
	s.output, s.events = output, stream
	changes := newApplier(s, k, dir, log)
	changes.read(l.text)
	changes.warned = warnedOf(l.warnings)
	changes.recall(known)
	if err := changes.begin(control.SocketIn(dir, k.Socket), cfg); err != nil {
		tellService(log, k.Service.Stopping()) // a next start finds the sockets
		unstable := shutDown(s, log)
		return unstable != nil, errors.Join(err, unstable)
	}
	limitMemory(cfg, len(s.Loops()), log)
	if k.Alone {
		confineProcess(cfg, log)
	}
	tellService(log, k.Service.Ready(s.summary()))
	life, end := context.WithCancel(context.Background()) // the watchdog does not sleep during a stop
	var told sync.WaitGroup
	told.Go(func() { s.tellAlive(life, log) })
	defer told.Wait()
	defer end()
	var beside sync.WaitGroup
	beside.Go(func() { s.watchHealth(changes.life, log) })
	beside.Go(func() { changes.followImages(changes.life, log) })
	beside.Go(func() { changes.keepSnapshots(changes.life) })
	beside.Go(func() { keepGuests(changes.life, dir, s, log) })
	announce(c.Out, cfg, s.Server)
	log.Info("ready", "version", version.Number, "targets", len(cfg.Targets), "volumes", len(cfg.Volumes))
	changes.reloadUntil(stop, hangups)
	changes.trail.Note(server.Change{What: "stop the server", By: server.Signal})
	tellService(log, k.Service.Stopping())
	changes.end()
	_ = changes.trail.SetFile("") // of none there is nothing to tell
	beside.Wait()                 // they look at the cache and the sessions, which end
	err = shutDown(s, log)
	return true, errors.Join(err, changes.moves.settle(s.config.Load(), err == nil))
}
