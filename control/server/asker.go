package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// Asker is who asks for a change that may have to wait, and hears how it goes. The zero
// value is nobody.
type Asker struct {
	By     string      // for the log, and for the states of the configuration file
	stands []*standing // of those who ask
	jobs   []*job      // none: the answer is waited for
}

// Together is who asks for changes that are made as one.
func Together(all []Asker) (t Asker) {
	var names []string
	for _, a := range all {
		t.stands = append(t.stands, a.stands...)
		if t.jobs = append(t.jobs, a.jobs...); !slices.Contains(names, a.By) {
			names = append(names, a.By)
		}
	}
	t.By = strings.Join(names, ", ")
	return t
}

// askerOf is who makes a request. A job of theirs may be cancelled until Begin.
func askerOf(ctx context.Context) Asker {
	turnOf(ctx).end() // it may have to wait, and changes are made one at a time
	a := Asker{By: callerOf(ctx).String(), stands: []*standing{standingOf(ctx)}}
	if j := jobOf(ctx); j != nil {
		a.jobs = []*job{j}
		j.of.mu.Lock()
		defer j.of.mu.Unlock()
		j.begun, j.State = false, control.JobWaiting
	}
	return a
}

// Revoked says why who asks may not any more what he asked for; nil: he may.
func (a Asker) Revoked() error {
	for _, s := range a.stands {
		if err := s.revoked(); err != nil {
			return err
		}
	}
	return nil
}

// Begin is to be called once others are not waited for any more, and before anything is
// changed. After an error nothing is to be: the change was cancelled meanwhile (*Refusal),
// or who asked may not any more.
func (a Asker) Begin() error {
	if err := a.Revoked(); err != nil {
		return huma.Error403Forbidden("nothing was changed: " + err.Error())
	}
	for _, j := range a.jobs {
		if err := j.begins(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) begins() error {
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
	tell := func(how func() control.Progress) {
		for _, j := range a.jobs {
			j.tells(how)
		}
	}
	tell(how)
	return func() { tell(nil) }
}

func (j *job) tells(how func() control.Progress) {
	j.of.mu.Lock()
	defer j.of.mu.Unlock()
	j.how = how
}

// Stoppable says that what was begun may be ended early, until ended is called: stop then
// has it end soon, without waiting for that.
func (a Asker) Stoppable(stop func()) (ended func()) {
	for _, j := range a.jobs {
		j.stoppable(stop)
	}
	return func() {
		for _, j := range a.jobs {
			j.stoppable(nil)
		}
	}
}

func (j *job) stoppable(stop func()) {
	j.of.mu.Lock()
	defer j.of.mu.Unlock()
	j.stop = stop
}

// cancel cancels a job in the name of somebody, if it waits or can be ended early.
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
	case j.stop != nil:
		j.ending = by.String()
		go j.stop()
	case j.begun:
		return refuse("it has begun, and is finished or taken back as a whole")
	case j.ending == "":
		j.ending, j.State = by.String(), control.JobCancelled
	}
	return j.told(by.Role), nil
}
