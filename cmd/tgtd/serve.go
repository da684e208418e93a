package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"lunar/conf"
	"lunar/internal/confine"
	"lunar/internal/control"
)

type serveCommand struct {
	Config     string   `short:"c" type:"path" placeholder:"FILE" help:"Configuration file. Without one, a volume of 1 GiB is served to this machine."`
	StateDir   string   `type:"path" placeholder:"DIR" help:"Where volumes with relative paths and the server's identity live. Default: /var/lib/lunar for root, lunar in the XDG state directory for others."`
	Socket     string   `type:"path" placeholder:"PATH" help:"Control socket, which tgtd status and others ask. Default: control.sock in the state directory."`
	Listen     []string `sep:"," placeholder:"ADDR:PORT" help:"Listen here instead; may be repeated. :3260 is every IPv4 and IPv6 address."`
	allowances `embed:""`
	LogLevel   string `enum:",debug,info,warn,error" default:"" placeholder:"LEVEL" help:"debug, info, warn or error; overrides the configuration."`
}

// Run serves until a signal comes or ctx ends, and returns nil if everything
// that was acknowledged is stable. A start that fails leaves no file that it made.
func (k serveCommand) Run(ctx context.Context, c console) (err error) {
	if alone {
		_ = confine.CoreDumps(false) // before there is a secret; confineServer tells if that fails
	}
	stop, hangups, release := onSignal(ctx, c.err)
	defer release()
	dir, err := pathOfStateDir(k.StateDir)
	if err != nil {
		return err
	}
	was := lookBefore(dir)
	if err := makeStateDir(dir); err != nil {
		return errors.Join(err, was.restore())
	}
	held, err := claimStateDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.release()) }()
	started, err := k.serve(c, dir, was, stop, hangups)
	if !started {
		err = errors.Join(err, was.restore())
	}
	return err
}

// serve serves the state directory. A start that failed, and of which nothing is open
// any more, is none.
func (k serveCommand) serve(c console, dir string, was *before, stop, hangups <-chan struct{}) (started bool, err error) {
	cfg, warnings, err := k.load(dir)
	if err != nil {
		return false, reported(err)
	}
	was.look(cfg)
	log, output := newLogger(c.err, cfg.Log)
	for _, w := range warnings {
		log.Warn("configuration", "at", w.String())
	}
	for _, what := range doubtful(cfg) {
		log.Warn("others may change a file of the server", "what", what)
	}
	start, err := k.compare(cfg, dir, func(what string) { log.Warn("other than at the last start", "what", what) })
	if err != nil {
		return false, err
	}
	s, err := start.assemble(cfg, dir, log)
	if err != nil {
		return false, err
	}
	s.output = output
	changes := newApplier(s, k, dir, log)
	if err := changes.begin(controlSocket(k.Socket, dir), cfg); err != nil {
		unstable := shutDown(s, log)
		return unstable != nil, errors.Join(err, unstable)
	}
	confineServer(s, cfg, log)
	var beside sync.WaitGroup
	beside.Go(func() { s.health.watch(changes.life, s, log) })
	beside.Go(func() { keepGuests(changes.life, dir, s, log) })
	announce(c.out, cfg, s.Server)
	log.Info("ready", "version", version, "targets", len(cfg.Targets), "volumes", len(cfg.Volumes))
	changes.reloadUntil(stop, hangups)
	control.Change{What: "stop the server", By: "signal"}.Log(log)
	changes.end()
	beside.Wait() // they look at the cache and the sessions, which end
	return true, shutDown(s, log)
}

// load reads the configuration that the flags name and applies the flags that
// override it.
func (k serveCommand) load(dir string) (cfg *conf.Config, warnings []conf.Warning, err error) {
	if k.Config == "" {
		cfg, err = conf.Default(dir, nil)
	} else {
		cfg, warnings, err = conf.Load(k.Config)
	}
	if err == nil {
		err = k.override(cfg, dir)
	}
	return cfg, warnings, err
}

// override applies the flags that override a configuration.
func (k serveCommand) override(cfg *conf.Config, dir string) error {
	cfg.InStateDir(dir)
	if k.LogLevel != "" {
		cfg.Log.Level = k.LogLevel
	}
	return cfg.SetListen(k.Listen)
}

// sameSignal is how soon after the first a signal still belongs to it:
// timeout(1), for one, signals both the process and its group.
const sameSignal = 500 * time.Millisecond

// onSignal returns a channel that is closed by SIGTERM, by SIGINT and at the
// end of ctx, and one that gets something after SIGHUP. A second signal to end
// ends the process at once.
func onSignal(ctx context.Context, messages io.Writer) (stop, hangups <-chan struct{}, release func()) {
	signals, done, first, hangup := make(chan os.Signal, 4), make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() {
		end := ctx.Done()
		var stopping time.Time
		for {
			select {
			case <-done:
				return
			case <-end:
				end = nil
			case s := <-signals:
				if s == syscall.SIGHUP {
					select {
					case hangup <- struct{}{}:
					default: // the one before has not been seen to
					}
					continue
				}
				if !stopping.IsZero() && time.Since(stopping) > sameSignal {
					fmt.Fprintf(messages, "tgtd: %v again: ending at once\n", s)
					os.Exit(exitFailure)
				}
			}
			if stopping.IsZero() {
				stopping = time.Now()
				close(first)
			}
		}
	}()
	return first, hangup, func() { signal.Stop(signals); close(done) }
}

func levelOf(l conf.Log) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return slog.LevelInfo
	}
	return level
}
