package server

import (
	"errors"
	"fmt"
	"math/rand"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"lunar/control"
)

// TestJobsModel: whatever begins, waits, is cancelled and ends in whatever order, the table
// has all jobs that are under way, of which there are never more than it allows, altogether
// and of one client. Of the ended ones it has the last of each client, as many as it keeps
// and no longer than they are kept: who begins the most loses the most.
func TestJobsModel(t *testing.T) {
	at := time.UnixMilli(1e12)
	table := newJobs(func() time.Time { return at })
	rnd := rand.New(rand.NewSource(16))
	callers := []Caller{{Kind: "token", Name: "busy", Role: control.Operate}, {Kind: "token", Name: "seldom", Role: control.Operate}, {Kind: "user", Name: "seldom", Role: control.Operate}, {Kind: "user", Name: "root", Role: control.Admin}}
	type known struct {
		*job
		of        int
		ended     time.Time
		cancelled bool
	}
	var under, ended []*known // ended: the oldest first
	full, late := 0, 0
	for step := range 6000 {
		at = at.Add(time.Duration(rnd.Intn(20)) * time.Second)
		switch pick := rnd.Intn(4); {
		case pick <= 1 || len(under) == 0:
			of := max(0, rnd.Intn(13)-9)
			own, others := 0, 0
			for _, k := range under {
				if k.of == of {
					own++
				}
				if callers[k.of].Role != control.Admin {
					others++
				}
			}
			admin := callers[of].Role == control.Admin
			j, err := table.begin("POST", "/x", callers[of], control.Operate)
			if (err != nil) != (len(under) == maxJobs || own == maxJobs/2 || !admin && others == maxJobs-forAdmins) {
				t.Fatalf("step %d: %d under way, %d its own, %d not of administrators: %v", step, len(under), own, others, err)
			}
			if admin && len(under) >= maxJobs-forAdmins {
				late++
			}
			if err == nil {
				under = append(under, &known{job: j, of: of})
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
		states, kept := map[string]string{}, 0
		for _, j := range table.list() {
			states[j.ID] = j.State
			if j.Ended != nil {
				kept++
			}
			if j.Result != nil {
				t.Fatalf("step %d: found a result in a list", step)
			}
		}
		if len(states)-kept != len(under) || kept > keptJobs {
			t.Fatalf("step %d: found %d jobs under way and %d ended, expected %d and at most %d", step, len(states)-kept, kept, len(under), keptJobs)
		}
		if kept == keptJobs {
			full++
		}
		for _, k := range under {
			want := control.JobRunning
			if k.cancelled {
				want = control.JobCancelled
			}
			if states[k.ID] != want {
				t.Fatalf("step %d: found %q, expected %q", step, states[k.ID], want)
			}
		}
		newer := map[int]int{} // of each client
		for _, k := range slices.Backward(ended) {
			if newer[k.of]++; newer[k.of] <= keptJobs/len(callers) && at.Sub(k.ended) <= keepTime && states[k.ID] == "" {
				t.Fatalf("step %d: lost %s, the last but %d of its client", step, k.ID, newer[k.of]-1)
			}
			if at.Sub(k.ended) > keepTime && states[k.ID] != "" {
				t.Fatalf("step %d: found %s, which ended too long ago", step, k.ID)
			}
		}
	}
	if full < 100 || late < 10 {
		t.Errorf("the table was full in %d steps, and administrators came when others had all of theirs in %d, expected some", full, late)
	}
}

// TestJobResults: a result is for whoever could have asked for it, a long one is not kept,
// and progress is told until it ends.
func TestJobResults(t *testing.T) {
	me := Caller{Kind: "user", Name: "me"}
	table := newJobs(time.Now)
	begin := func() *job {
		j, err := table.begin("POST", "/x", me, control.Operate)
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
	asker := Asker{By: "me", jobs: []*job{j}}
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
	if _, err := table.begin("POST", "/x", me, control.Operate); err == nil {
		t.Error("one begins after the end")
	}
}
