package main

import (
	"fmt"

	"lunar/conf"
)

type checkCommand struct {
	File string `arg:"" help:"The configuration file." type:"path"`
}

// Run prints warnings and a summary; problems are the error.
func (k checkCommand) Run(c console) error {
	cfg, warnings, err := conf.Load(k.File)
	if err != nil {
		return reported(err)
	}
	for _, w := range warnings {
		fmt.Fprintf(c.err, "warning: %s\n", w.Detail())
	}
	_, err = fmt.Fprintf(c.out, "%s: ok: %s, %s, %d warnings\n", k.File,
		counted(len(cfg.Targets), "target"), counted(len(cfg.Volumes), "volume"), len(warnings))
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
