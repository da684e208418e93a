package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// The paths of jobs. A request that changes something is made one by AsyncQuery.
const (
	JobsPath   = "/v1/jobs"
	JobPath    = "/v1/jobs/{id}"
	AsyncQuery = "async"
)

// The states of a job.
const (
	JobWaiting   = "waiting" // for another change; it may be cancelled
	JobRunning   = "running"
	JobDone      = "done"
	JobFailed    = "failed"
	JobCancelled = "cancelled"
)

// Job is a request that was answered before it ended.
type Job struct {
	ID       string          `json:"id" doc:"Its identifier, which no other job has, nor one of the server before."`
	Method   string          `json:"method" doc:"Method of the request."`
	Path     string          `json:"path" doc:"Path of the request."`
	By       string          `json:"by" doc:"Who asked."`
	State    string          `json:"state" enum:"waiting,running,done,failed,cancelled" doc:"waiting: for another change, and it may be cancelled; failed: status and result are those of the refusal; cancelled: nothing was changed."`
	Began    time.Time       `json:"began" doc:"When it was asked for."`
	Ended    *time.Time      `json:"ended,omitempty" doc:"When it ended; absent: it has not."`
	Progress *Progress       `json:"progress,omitempty" doc:"What it waits for, and how far that is; absent: nothing that takes long."`
	Status   int             `json:"status,omitempty" doc:"HTTP status that the request would have been answered with; absent: it has not ended."`
	Result   json.RawMessage `json:"result,omitempty" doc:"The answer: a result, or a problem document. Absent: it has not ended, it has none, it is longer than 1 MiB, or who asks may not ask for the operation itself."`
}

// Progress is how far something is that takes long.
type Progress struct {
	What    string `json:"what" doc:"What is waited for, in words."`
	Percent *int   `json:"percent,omitempty" doc:"How much of it is done, in percent; absent: nobody knows."`
}

// String is for a line.
func (p *Progress) String() string {
	if p.Percent == nil {
		return p.What
	}
	return fmt.Sprintf("%s (%d %%)", p.What, *p.Percent)
}

// JobList is the answer of /v1/jobs.
type JobList struct {
	Jobs []Job `json:"jobs" nullable:"false" doc:"All jobs that are under way, and the last that have ended, the oldest first. None has its result here."`
}

// Into decodes the result of a job into out, or returns why there is none: a *Refusal if
// the request was refused.
func (j *Job) Into(out any) error {
	switch {
	case j.State == JobCancelled:
		return fmt.Errorf("job %s was cancelled, and nothing was changed", j.ID)
	case j.State == JobFailed:
		return AsRefusal(j.Result)
	case j.State != JobDone:
		return fmt.Errorf("job %s has not ended", j.ID)
	case len(j.Result) == 0:
		return fmt.Errorf("job %s is done; its result is longer than a job keeps", j.ID)
	}
	return json.Unmarshal(j.Result, out)
}

// Jobs asks for all jobs.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var list JobList
	err := c.Get(ctx, JobsPath, &list)
	return list.Jobs, err
}

// Job asks for one.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	var j Job
	err := c.Get(ctx, JobAt(id), &j)
	return j, err
}

// JobAt is the path of a job.
func JobAt(id string) string { return pathOf(JobPath, "{id}", id) }

// CancelJob cancels a job that waits. That it does not is a *Refusal.
func (c *Client) CancelJob(ctx context.Context, id string) (Job, error) {
	var j Job
	err := c.send(ctx, http.MethodDelete, JobAt(id), nil, &j)
	return j, err
}

// StartApply is Apply as a job.
func (c *Client) StartApply(ctx context.Context, f File) (Job, error) {
	return c.start(ctx, http.MethodPost, ApplyPath, f)
}

// StartChange is Change as a job.
func (c *Client) StartChange(ctx context.Context, all Changes) (Job, error) {
	return c.start(ctx, http.MethodPost, ChangesPath, all)
}

// StartDetach is Detach as a job.
func (c *Client) StartDetach(ctx context.Context, volume string, d Detach) (Job, error) {
	return c.start(ctx, http.MethodPost, pathOf(DetachPath, "{name}", volume), d)
}

// StartFreeze is Freeze as a job, which nobody can attend to.
func (c *Client) StartFreeze(ctx context.Context, volume string, f Freeze) (Job, error) {
	return c.start(ctx, http.MethodPost, pathOf(FreezePath, "{name}", volume), f)
}

func (c *Client) start(ctx context.Context, method, path string, in any) (Job, error) {
	var j Job
	err := c.send(ctx, method, path+"?"+url.Values{AsyncQuery: {"true"}}.Encode(), in, &j)
	if err == nil && j.ID == "" {
		err = errors.New("the server knows no jobs: it has made the change at once")
	}
	return j, err
}

const (
	// minJobInterval and maxJobInterval are how often Await looks: each eighth of the time
	// that it has waited, within these.
	minJobInterval, maxJobInterval = 5 * time.Millisecond, 250 * time.Millisecond
	// maxUnanswered is how often in succession it may get no answer: a change of who may
	// ask, and from where, breaks off who asks.
	maxUnanswered = 20
)

// Await returns a job that has ended. Meanwhile it tells how it is.
func (c *Client) Await(ctx context.Context, id string, told func(*Job)) (Job, error) {
	began, again := time.Now(), time.NewTimer(0)
	defer again.Stop()
	for unanswered := 0; ; {
		j, err := c.Job(ctx, id)
		switch broken := (*url.Error)(nil); {
		case errors.As(err, &broken) && unanswered < maxUnanswered:
			unanswered++
		case err != nil || j.Ended != nil:
			return j, err
		default:
			unanswered = 0
			told(&j)
		}
		select {
		case <-again.C:
			again.Reset(min(max(time.Since(began)/32, minJobInterval), maxJobInterval))
		case <-ctx.Done():
			return j, ctx.Err()
		}
	}
}
