package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// GenerationPath is the path of one state of the file. It is exported for the reflection
// of huma.
type GenerationPath struct {
	Number int `path:"number" minimum:"1" doc:"Its number."`
}

func addGenerations(api huma.API, s Source) {
	get(api, control.GenerationsPath, "The last states of the configuration file", func() (control.GenerationList, error) {
		all, err := s.Generations()
		return control.GenerationList{Generations: all}, err
	})
	change(api, "get-generation", http.MethodGet, control.GenerationPath, "One state of the configuration file, with its text", func(in *GenerationPath) (control.Generation, error) {
		return s.Generation(in.Number)
	})
	changeBy(api, "post-rollback", control.RollbackPath, "Put an earlier state of the configuration file into force, and write it", s.Rollback)
	changeBy(api, "post-save", control.SavePath, "Write to the configuration file what was changed until the next start only", s.Save)
}

// changeBy adds an operation whose result is kept with who asked.
func changeBy[I any](api huma.API, id, path, summary string, do func(by Asker, in I) (control.Changed, error)) {
	huma.Register(api, huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Summary: summary, MaxBodyBytes: maxBody},
		func(ctx context.Context, in *struct{ Body I }) (*answer[control.Changed], error) {
			noteInput(ctx, in)
			out, err := do(askerOf(ctx), in.Body)
			if err != nil {
				return nil, refusal(err)
			}
			noteResult(ctx, out)
			return &answer[control.Changed]{out}, nil
		})
}
