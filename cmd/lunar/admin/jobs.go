package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type jobsCommand struct {
	asking    `embed:""`
	selection `embed:""`
	ID        string `arg:"" optional:"" help:"Show this one, with what has come of it."`
	Wait      bool   `help:"Wait until it has ended. Exit status 1: it was refused or cancelled."`
	Cancel    bool   `help:"Cancel it, if it waits for another change."`
}

// Run lists jobs, or shows one.
func (k jobsCommand) Run(ctx context.Context, c cli.Console) error {
	switch {
	case k.ID == "" && (k.Wait || k.Cancel):
		return usage(errors.New("found no job, expected one: lunar jobs ID"))
	case k.Wait && k.Cancel:
		return usage(errors.New("found --wait and --cancel, expected one of them"))
	}
	return k.ask(func(api *control.Client) error {
		if k.ID == "" {
			return list(ctx, &k.selection, api, c, control.JobsPath, jobsListed)
		}
		if k.Cancel {
			if _, err := api.CancelJob(ctx, k.ID); err != nil {
				return err
			}
		}
		var waited error
		if k.Wait {
			j, err := awaited(ctx, api, c, k.ID)
			if err != nil {
				return err
			}
			if j.State != control.JobDone {
				waited = fmt.Errorf("job %s: %s", j.ID, j.State)
			}
		}
		return errors.Join(printed(ctx, &k.output, api, c, control.JobAt(k.ID), tellJob), waited)
	})
}

var jobsListed = rowsOf[control.JobList, control.Job]{
	rows:     func(l *control.JobList) []control.Job { return l.Jobs },
	document: func(_ *control.JobList, rows []control.Job) any { return control.JobList{Jobs: rows} },
	table: listing.Table[control.Job]{
		{Name: "job", Of: func(j *control.Job) any { return j.ID }},
		{Name: "state", Of: func(j *control.Job) any { return j.State }},
		{Name: "what", Of: func(j *control.Job) any { return iscsiname.Printable(j.Method + " " + j.Path) }},
		{Name: "by", Of: func(j *control.Job) any { return iscsiname.Printable(j.By) }},
		{Name: "began", Of: func(j *control.Job) any { return j.Began }},
		{Name: "ended", Of: func(j *control.Job) any {
			if j.Ended == nil {
				return nil
			}
			return *j.Ended
		}},
		{Name: "progress", Of: func(j *control.Job) any {
			if j.Progress == nil {
				return nil
			}
			return iscsiname.Printable(j.Progress.String())
		}},
	},
}

func tellJob(w io.Writer, j *control.Job) error {
	fmt.Fprintf(w, "job %s: %s\nwhat: %s\nby: %s\nbegan: %s\n", j.ID, j.State, iscsiname.Printable(j.Method+" "+j.Path), iscsiname.Printable(j.By), j.Began.Local().Format(time.DateTime))
	if j.Progress != nil {
		fmt.Fprintf(w, "progress: %s\n", iscsiname.Printable(j.Progress.String()))
	}
	if j.Ended != nil {
		fmt.Fprintf(w, "ended: %s, status %d\n", j.Ended.Local().Format(time.DateTime), j.Status)
	}
	if len(j.Result) == 0 {
		return nil
	}
	return document(w, asYAML, j.Result)
}

// asynchronous is a flag of commands whose change may take long.
type asynchronous struct {
	Async bool `help:"Do not wait for it: print the job that goes on, which lunar jobs shows."`
}

// made makes a change, and decodes what has come of it into out. With --async it begins
// it, and finished is false; on a terminal it shows how far the change is.
func made[T any](ctx context.Context, k asynchronous, api *control.Client, c cli.Console, wait func() (T, error), start func() (control.Job, error)) (out T, finished bool, err error) {
	if !k.Async && !terminal(c.Err) {
		out, err = wait()
		return out, true, err
	}
	j, err := start()
	if busy := (*control.Refusal)(nil); errors.As(err, &busy) && busy.Busy && !k.Async { // progress is not worth a refusal
		out, err = wait()
		return out, true, err
	}
	if err != nil {
		return out, false, err
	}
	if k.Async {
		_, err = fmt.Fprintf(c.Out, "Job %s goes on: lunar jobs %s --wait says what has come of it.\n", j.ID, j.ID)
		return out, false, err
	}
	if j, err = awaited(ctx, api, c, j.ID); err == nil {
		err = j.Into(&out)
	}
	return out, true, err
}

// awaited returns a job that has ended. Meanwhile it shows its progress in one line of a
// terminal, and elsewhere nothing.
func awaited(ctx context.Context, api *control.Client, c cli.Console, id string) (control.Job, error) {
	if !terminal(c.Err) {
		return api.Await(ctx, id, func(*control.Job) {})
	}
	before := ""
	defer func() {
		if before != "" {
			fmt.Fprint(c.Err, clearLine)
		}
	}()
	return api.Await(ctx, id, func(j *control.Job) {
		line := ""
		switch {
		case j.State == control.JobWaiting:
			line = "waits for another change"
		case j.Progress != nil:
			line = iscsiname.Printable(j.Progress.String())
		}
		if line != before {
			fmt.Fprint(c.Err, clearLine, line)
			before = line
		}
	})
}

// clearLine goes to the beginning of a terminal's line, which is empty then (ECMA-48).
const clearLine = "\r\x1b[K"

// terminal reports whether somebody looks on.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
