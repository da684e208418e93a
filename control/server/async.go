package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"lunar/control"
	"lunar/internal/loglimit"
)

// async makes jobs of requests that ask for it.
type async struct {
	api     huma.API
	jobs    *jobs
	log     *slog.Logger
	trail   *Trail
	journal *loglimit.Journal
}

// changing are the methods of requests that may be jobs: what only reads is none, so that
// nobody who only reads takes their places.
var changing = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// neverJobs are the operations that are none all the same: one that ends a job, and one
// whose answer goes on until somebody has seen enough.
var neverJobs = map[string]bool{"delete-job": true, "post-trace": true}

// middleware stands behind what admits the request, and before what reads it: who may not
// is refused at once, and mistakes in the body are the job's.
func (a *async) middleware(ctx huma.Context, next func(huma.Context)) {
	switch asked := ctx.Query(control.AsyncQuery); {
	case !slices.Contains(changing, ctx.Method()) || neverJobs[ctx.Operation().OperationID] || asked == "" || asked == "false":
		next(ctx)
	case asked != "true":
		a.refuse(ctx, http.StatusUnprocessableEntity, "query async: found "+clipped(asked)+", expected true or false")
	default:
		a.begin(ctx, next)
	}
}

func (a *async) refuse(ctx huma.Context, status int, why string) {
	_ = huma.WriteErr(a.api, ctx, status, why) // the client may have gone
}

// begin answers with a job, and runs the request as one.
func (a *async) begin(ctx huma.Context, next func(huma.Context)) {
	r, _ := humago.Unwrap(ctx)
	op := ctx.Operation()
	body, err := io.ReadAll(io.LimitReader(r.Body, op.MaxBodyBytes+1))
	if err != nil {
		a.refuse(ctx, http.StatusBadRequest, "the body: "+err.Error())
		return
	}
	if int64(len(body)) > op.MaxBodyBytes {
		a.refuse(ctx, http.StatusRequestEntityTooLarge, "the body is too long")
		return
	}
	by := callerOf(r.Context())
	needs, _ := roleOf(op.OperationID)
	j, err := a.jobs.begin(r.Method, clipped(r.URL.Path), by, needs)
	if err != nil {
		a.refuse(ctx, http.StatusServiceUnavailable, err.Error())
		return
	}
	a.log.Info("job begun", "job", j.ID, "what", j.Method+" "+j.Path, "by", j.By)
	first, _ := a.jobs.one(j.ID, control.NoRole) // before it can end
	detached := context.WithValue(context.WithValue(context.WithoutCancel(r.Context()), placeKey, nil), jobKey, j)
	go a.run(j, r.WithContext(detached), body, op, next)
	ctx.SetHeader("Location", control.JobAt(j.ID))
	ctx.SetHeader("Content-Type", "application/json")
	ctx.SetStatus(http.StatusAccepted)
	_ = a.api.Marshal(ctx.BodyWriter(), "application/json", first) // the client may have gone
}

// run makes the request. It is noted when it ends, as others are.
func (a *async) run(j *job, r *http.Request, body []byte, op *huma.Operation, next func(huma.Context)) {
	to := &reply{header: http.Header{}}
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer func() {
		if fault := recover(); fault != nil {
			a.log.Error("fault of the control API", "job", j.ID, "fault", fault, "stack", string(debug.Stack()))
			to = &reply{header: http.Header{}}
			problem(to, http.StatusInternalServerError, "the request was broken off by a fault of the server")
		}
		j.end(to.status, to.body.Bytes())
	}()
	audited(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next(humago.NewContext(op, r, w))
	}), a.trail, a.journal).ServeHTTP(to, r)
}

// JobRequest is the path of a job. It is exported for the reflection of huma.
type JobRequest struct {
	ID string `path:"id" maxLength:"64" doc:"Its identifier."`
}

// add adds the operations on jobs.
func (a *async) add() {
	huma.Register(a.api, huma.Operation{OperationID: "get-jobs", Method: http.MethodGet, Path: control.JobsPath, Summary: "Requests that were answered before they ended"},
		func(context.Context, *struct{}) (*answer[control.JobList], error) {
			return &answer[control.JobList]{control.JobList{Jobs: a.jobs.list()}}, nil
		})
	huma.Register(a.api, huma.Operation{OperationID: "get-job", Method: http.MethodGet, Path: control.JobPath, Summary: "One of them, with what has come of it"},
		func(ctx context.Context, in *JobRequest) (*answer[control.Job], error) {
			j, err := a.jobs.one(in.ID, callerOf(ctx).Role)
			if err != nil {
				return nil, refusal(err)
			}
			return &answer[control.Job]{j}, nil
		})
	huma.Register(a.api, huma.Operation{OperationID: "delete-job", Method: http.MethodDelete, Path: control.JobPath, Summary: "Cancel a job that waits for another change"},
		func(ctx context.Context, in *JobRequest) (*answer[control.Job], error) {
			j, err := a.jobs.cancel(in.ID, callerOf(ctx))
			if err != nil {
				return nil, refusal(err)
			}
			return &answer[control.Job]{j}, nil
		})
}

// describe says of all operations that change something that they can be jobs.
func (a *async) describe() {
	document := a.api.OpenAPI()
	schema := &huma.Schema{Ref: "#/components/schemas/Job"}
	for _, path := range document.Paths {
		for _, op := range []*huma.Operation{path.Post, path.Put, path.Patch, path.Delete} {
			if op == nil || neverJobs[op.OperationID] {
				continue
			}
			op.Parameters = append(op.Parameters, &huma.Param{Name: control.AsyncQuery, In: "query", Schema: &huma.Schema{Type: "boolean"}, Description: "Answer at once, with a job."})
			op.Responses["202"] = &huma.Response{Description: "It is a job (async).", Content: map[string]*huma.MediaType{"application/json": {Schema: schema}},
				Headers: map[string]*huma.Param{"Location": {Schema: &huma.Schema{Type: "string"}, Description: "Path of the job."}}}
		}
	}
}
