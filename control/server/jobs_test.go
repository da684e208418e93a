package server

import (
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"lunar/control"
)

// TestJobsModel: whatever begins, waits, is cancelled and ends in whatever order, the table
// has all jobs that are under way, of which there are never more than it allows, and of
// the ended ones the last, no longer than they are kept.
func TestJobsModel(t *testing.T) {
	at := time.UnixMilli(1e12)
	table := newJobs(func() time.Time { return at })
	rnd := rand.New(rand.NewSource(16))
	type known struct {
		*job
		ended     time.Time
		cancelled bool
	}
	var under, ended []*known // ended: the oldest first
	for step := range 4000 {
		at = at.Add(time.Duration(rnd.Intn(90)) * time.Second)
		switch pick := rnd.Intn(4); {
		case pick <= 1 || len(under) == 0:
			j, err := table.begin("POST", "/x", "me", control.Operate)
			if (err != nil) != (len(under) == maxJobs) {
				t.Fatalf("step %d: %d under way: %v", step, len(under), err)
			}
			if err == nil {
				under = append(under, &known{job: j})
			}
		case pick == 2:
			i := rnd.Intn(len(under))
			k := under[i]
			under = append(under[:i], under[i+1:]...)
			k.end(http.StatusOK, []byte(`{"n":1}`))
			k.ended, ended = at, append(ended, k)
		default:
			k := under[rnd.Intn(len(under))]
			if waits := rnd.Intn(2) == 0; waits && !k.cancelled {
				k.begun = false
				k.cancelled = true
				if _, err := table.cancel(k.ID, Caller{Role: control.Operate}); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
			} else if _, err := table.cancel(k.ID, Caller{Role: control.Admin}); (err == nil) != k.cancelled {
				t.Fatalf("step %d: cancelled %v: %v", step, k.cancelled, err)
			}
		}
		want := map[string]string{}
		for _, k := range under {
			want[k.ID] = control.JobRunning
			if k.cancelled {
				want[k.ID] = control.JobCancelled
			}
		}
		for i, n := len(ended)-1, 0; i >= 0 && n < keptJobs; i, n = i-1, n+1 {
			if at.Sub(ended[i].ended) <= keepTime {
				want[ended[i].ID] = control.JobDone
				if ended[i].cancelled {
					want[ended[i].ID] = control.JobCancelled
				}
			}
		}
		found := table.list()
		if len(found) != len(want) {
			t.Fatalf("step %d: found %d jobs, expected %d", step, len(found), len(want))
		}
		for _, j := range found {
			if j.State != want[j.ID] || j.Result != nil {
				t.Fatalf("step %d: found %+v, expected state %q without a result", step, j, want[j.ID])
			}
		}
	}
}

// TestJobResults: a result is for whoever could have asked for it, a long one is not kept,
// and progress is told until it ends.
func TestJobResults(t *testing.T) {
	table := newJobs(time.Now)
	begin := func() *job {
		j, err := table.begin("POST", "/x", "me", control.Operate)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	one := func(j *job, role control.Role) control.Job {
		out, err := table.one(j.ID, role)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	j := begin()
	asker := Asker{"me", j}
	half := 50
	ended := asker.Awaits(func() control.Progress { return control.Progress{What: "x", Percent: &half} })
	if p := one(j, control.Read).Progress; p == nil || p.String() != "x (50 %)" {
		t.Errorf("found %v", p)
	}
	ended()
	if p := one(j, control.Read).Progress; p != nil {
		t.Errorf("found %v after the end", p)
	}
	j.end(http.StatusConflict, []byte(`{"detail":"no","status":409}`))
	if out := one(j, control.Read); out.Result != nil || out.State != control.JobFailed || out.Status != http.StatusConflict {
		t.Errorf("a reader found %+v", out)
	}
	var r *control.Refusal
	if out := one(j, control.Operate); !errors.As(out.Into(nil), &r) || !r.State || r.What != "no" {
		t.Errorf("found %+v", out)
	}
	long := begin()
	long.end(http.StatusOK, []byte(`"`+strings.Repeat("x", maxResult)+`"`))
	if out := one(long, control.Admin); out.Result != nil || out.Into(nil) == nil {
		t.Errorf("found a result of %d bytes", len(out.Result))
	}
	if _, err := table.cancel(long.ID, Caller{Role: control.Read}); !strings.Contains(fmt.Sprint(err), "expected role operate") {
		t.Errorf("found %v", err)
	}
	if _, err := table.cancel("x", Caller{Role: control.Admin}); !errors.As(err, &r) || !r.Missing {
		t.Errorf("found %v", err)
	}
	<-table.close()
	if _, err := table.begin("POST", "/x", "me", control.Operate); err == nil {
		t.Error("one begins after the end")
	}
}
