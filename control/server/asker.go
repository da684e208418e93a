package server

import (
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// Asker is who asks for a change that may have to wait, and hears how it goes. The zero
// value is nobody.
type Asker struct {
	By  string // for the log, and for the states of the configuration file
	job *job   // nil: the answer is waited for
}

// askerOf is who makes a request. A job of theirs may be cancelled until Begin.
func askerOf(ctx context.Context) Asker {
	a := Asker{callerOf(ctx).String(), jobOf(ctx)}
	if j := a.job; j != nil {
		j.of.mu.Lock()
		defer j.of.mu.Unlock()
		j.begun, j.State = false, control.JobWaiting
	}
	return a
}

// Begin is to be called once others are not waited for any more, and before anything is
// changed. The error is a *Refusal: the change was cancelled meanwhile.
func (a Asker) Begin() error {
	j := a.job
	if j == nil {
		return nil
	}
	j.of.mu.Lock()
	defer j.of.mu.Unlock()
	if j.ending != "" {
		return &control.Refusal{What: "nothing was changed", State: true, Reasons: []control.Reason{{Text: "it was cancelled by " + j.ending}}}
	}
	j.begun, j.State = true, control.JobRunning
	return nil
}

// Awaits says how far something is that takes long, until ended is called. how may be
// called by any goroutine, and must not block.
func (a Asker) Awaits(how func() control.Progress) (ended func()) {
	j := a.job
	if j == nil {
		return func() {}
	}
	tell := func(how func() control.Progress) {
		j.of.mu.Lock()
		defer j.of.mu.Unlock()
		j.how = how
	}
	tell(how)
	return func() { tell(nil) }
}

// cancel cancels a job in the name of somebody, if it waits.
func (t *jobs) cancel(id string, by Caller) (control.Job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.find(id)
	refuse := func(why string) (control.Job, error) {
		return control.Job{}, &control.Refusal{What: fmt.Sprintf("job %s was not cancelled", id), State: true, Reasons: []control.Reason{{Text: why}}}
	}
	switch {
	case j == nil:
		return control.Job{}, unknownJob(id)
	case by.Role < j.needs:
		return control.Job{}, huma.Error403Forbidden(fmt.Sprintf("found %s with role %s, expected role %s, which the job needed", by, by.Role, j.needs))
	case j.Ended != nil:
		return refuse("it has ended")
	case j.begun:
		return refuse("it has begun, and is finished or taken back as a whole")
	case j.ending == "":
		j.ending, j.State = by.String(), control.JobCancelled
	}
	return j.told(by.Role), nil
}
