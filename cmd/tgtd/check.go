package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"lunar/conf"
)

type checkCommand struct {
	File     string `arg:"" help:"The configuration file." type:"path"`
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server, whose cache memory is looked at. Default: as for serve."`
}

// Run prints warnings, a summary and what the cache comes to on this machine;
// problems are the error. What volumes are on is opened for reading; nothing is
// made, changed or locked, and no memory taken.
func (k checkCommand) Run(c console) error {
	cfg, warnings, err := conf.Draft(k.File)
	if err != nil {
		return reported(err)
	}
	for _, w := range warnings {
		fmt.Fprintf(c.err, "warning: %s\n", w)
	}
	dir, err := pathOfStateDir(k.StateDir)
	if err == nil {
		cfg.InStateDir(dir)
		err = errors.Join(storedTwice(cfg), trustStateDir(dir), checkPaths(cfg, dir))
	} else {
		err = storedTwice(cfg)
	}
	if err != nil {
		return err
	}
	topology, err := topologyFor(&cfg.Server, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	notes, err := checkCache(cfg, topology, k.StateDir)
	if err != nil {
		return err
	}
	qosNotes, err := checkQoS(cfg)
	if err != nil {
		return err
	}
	cryptNotes, err := checkEncryption(cfg, k.StateDir)
	if err != nil {
		return err
	}
	congestionNotes, err := checkCongestion("/", cfg.Server.Congestion)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "%s: ok: %s, %s, %d warnings\n", k.File,
		counted(len(cfg.Targets), "target"), counted(len(cfg.Volumes), "volume"), len(warnings))
	for _, note := range slices.Concat(notes, qosNotes, checkISER(cfg), cryptNotes, congestionNotes, checkAddresses(cfg), checkPrivileges(cfg, "/"), doubtful(cfg)) {
		fmt.Fprintf(c.out, "%s: %s\n", k.File, note)
	}
	return err
}

// reported puts a list of problems on lines of their own.
func reported(err error) error {
	if problems, ok := err.(conf.Errors); ok {
		return fmt.Errorf("the configuration has %s:\n%w", counted(len(problems), "error"), err)
	}
	return err
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
