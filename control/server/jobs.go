package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"lunar/control"
)

const (
	maxJobs   = 16        // under way at a time, of which nobody has more than half
	forAdmins = 4         // of them, places that administrators alone may have
	keptJobs  = 64        // that have ended; more are forgotten of whom the most are kept
	keepTime  = time.Hour // for which they are kept
	maxResult = 1 << 20   // bytes that are kept of an answer
)

// jobs are requests that were answered before they end: those under way, and the last that
// have ended. Its methods may be called by any number of goroutines.
type jobs struct {
	now   func() time.Time
	boot  string // begins all identifiers: those of another process are others
	under sync.WaitGroup

	mu      sync.Mutex
	last    uint64
	all     []*job // oldest first
	stopped bool
}

// job is one of them. Its fields are under jobs.mu.
type job struct {
	control.Job
	of     *jobs
	holder string       // whose share of the places it takes
	admin  bool         // of whoever began it
	needs  control.Role // of the request; who has less does not see the result
	begun  bool         // a change that may not be broken off
	ending string       // by whom it was cancelled; empty: by nobody
	how    func() control.Progress
	stop   func() // ends it early; nil: it cannot be
}

func newJobs(now func() time.Time) *jobs {
	return &jobs{now: now, boot: strconv.FormatInt(now().UnixMilli(), 36)}
}

// begin adds a job; the error says why there cannot be one. end is to be called once.
func (t *jobs) begin(method, path string, by Caller, needs control.Role) (*job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
	under, own, others := 0, 0, 0
	for _, j := range t.all {
		if j.Ended == nil {
			under++
			if j.holder == by.identity() {
				own++
			}
			if !j.admin {
				others++
			}
		}
	}
	admin := by.Role == control.Admin
	switch {
	case t.stopped:
		return nil, fmt.Errorf("the server is stopping")
	case under >= maxJobs:
		return nil, fmt.Errorf("found %d jobs under way, expected fewer: try again", under)
	case !admin && others >= maxJobs-forAdmins:
		return nil, fmt.Errorf("found %d jobs under way of those who are no administrators, expected fewer: try again", others)
	case own >= maxJobs/2:
		return nil, fmt.Errorf("found %d jobs of %s under way, expected fewer: try again", own, by.identity())
	}
	t.last++
	j := &job{of: t, holder: by.identity(), admin: admin, needs: needs, begun: true, Job: control.Job{ID: fmt.Sprintf("%s-%d", t.boot, t.last),
		Method: method, Path: path, By: by.String(), State: control.JobRunning, Began: t.now()}}
	t.all = append(t.all, j)
	t.under.Add(1)
	return j, nil
}

// forget drops jobs that have ended too long ago, or too many. The caller has the lock.
func (t *jobs) forget() {
	old := t.now().Add(-keepTime)
	t.all = slices.DeleteFunc(t.all, func(j *job) bool { return j.Ended != nil && j.Ended.Before(old) })
	ended, sum := map[string]int{}, 0
	for _, j := range t.all {
		if j.Ended != nil {
			ended[j.holder]++
			sum++
		}
	}
	for ; sum > keptJobs; sum-- {
		i := t.spare(ended)
		ended[t.all[i].holder]--
		t.all = slices.Delete(t.all, i, i+1)
	}
}

// spare is the job that ended first of whoever has the most that have: nobody loses his to
// others who begin thousands. The caller has the lock.
func (t *jobs) spare(ended map[string]int) (at int) {
	at = -1
	most := slices.Max(slices.Collect(maps.Values(ended)))
	for i, j := range t.all {
		if j.Ended != nil && ended[j.holder] == most && (at < 0 || j.Ended.Before(*t.all[at].Ended)) {
			at = i
		}
	}
	return at
}

// end notes what a job's request was answered with.
func (j *job) end(status int, body []byte) {
	t := j.of
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.under.Done()
	at := t.now()
	j.Ended, j.Status, j.how, j.stop, j.State = &at, status, nil, nil, control.JobDone
	switch {
	case j.ending != "":
		j.State = control.JobCancelled
	case status >= http.StatusBadRequest:
		j.State = control.JobFailed
	}
	if len(body) <= maxResult && json.Valid(body) {
		j.Result = body
	}
	t.forget()
}

// list tells of all jobs, without their results.
func (t *jobs) list() []control.Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget()
	out := []control.Job{}
	for _, j := range t.all {
		out = append(out, j.told(control.NoRole))
	}
	return out
}

// find returns the job of an identifier; nil: there is none. The caller has the lock.
func (t *jobs) find(id string) *job {
	t.forget()
	if i := slices.IndexFunc(t.all, func(j *job) bool { return j.ID == id }); i >= 0 {
		return t.all[i]
	}
	return nil
}

// one tells of a job to somebody with a role.
func (t *jobs) one(id string, to control.Role) (control.Job, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j := t.find(id)
	if j == nil {
		return control.Job{}, unknownJob(id)
	}
	return j.told(to), nil
}

func unknownJob(id string) error {
	return &control.Refusal{What: fmt.Sprintf("found no job %q: it has never been, ended too long ago, or the server was started again since", id), Missing: true}
}

// told is the job as somebody with a role may see it. The caller has the lock.
func (j *job) told(to control.Role) control.Job {
	out := j.Job
	if to < j.needs {
		out.Result = nil
	}
	if j.how != nil {
		if p := j.how(); p.What != "" {
			out.Progress = &p
		}
	}
	return out
}

// close lets no job begin any more, and returns what is closed when all have ended.
func (t *jobs) close() <-chan struct{} {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		t.under.Wait()
		close(ended)
	}()
	return ended
}

// jobOf is the job that a request is; nil: it is none.
func jobOf(ctx context.Context) *job {
	j, _ := ctx.Value(jobKey).(*job)
	return j
}
