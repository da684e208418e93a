package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// change adds an operation that can be refused.
func change[I, O any](api huma.API, id, method, path, summary string, do func(*I) (O, error)) {
	changeAs(api, describe(id, method, path, summary), do)
}

func describe(id, method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxBody}
}

// changeAs adds the operation that op describes, which can be refused.
func changeAs[I, O any](api huma.API, op huma.Operation, do func(*I) (O, error)) {
	noted(api, op, func(_ context.Context, in *I) (O, error) { return do(in) })
}

// changeBy is the same of one that may have to wait for others, and calls Asker.Begin then.
func changeBy[I, O any](api huma.API, op huma.Operation, do func(Asker, *I) (O, error)) {
	noted(api, op, func(ctx context.Context, in *I) (O, error) { return do(askerOf(ctx), in) })
}

// noted adds an operation of which the log has what it was given and what came of it.
func noted[I, O any](api huma.API, op huma.Operation, do func(context.Context, *I) (O, error)) {
	huma.Register(api, op,
		func(ctx context.Context, in *I) (*answer[O], error) {
			noteInput(ctx, in)
			body, err := do(ctx, in)
			if err != nil {
				return nil, refusal(err)
			}
			noteResult(ctx, body)
			return &answer[O]{body}, nil
		})
}

// refusal makes a problem document of an error.
func refusal(err error) error {
	var r *control.Refusal
	if !errors.As(err, &r) {
		return err
	}
	status := http.StatusUnprocessableEntity
	switch {
	case r.Missing:
		status = http.StatusNotFound
	case r.Stale:
		status = http.StatusPreconditionFailed
	case r.State:
		status = http.StatusConflict
	}
	var details []error
	for _, reason := range r.Reasons {
		details = append(details, &huma.ErrorDetail{Location: reason.Place, Message: reason.Text})
	}
	return huma.NewError(status, r.What, details...)
}

// problem answers with an error as RFC 9457 has it, like all others of the API.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail})
}

// answer is a response with a JSON body.
type answer[T any] struct{ Body T }

// get adds a read-only operation.
func get[T any](api huma.API, path, summary string, read func() (T, error)) {
	huma.Register(api, huma.Operation{
		OperationID: "get" + path[len("/v1"):], Method: "GET", Path: path, Summary: summary,
	}, func(context.Context, *struct{}) (*answer[T], error) {
		body, err := read()
		if err != nil {
			return nil, err
		}
		return &answer[T]{body}, nil
	})
}
