package server

import (
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
	changeBy(api, describe("post-rollback", http.MethodPost, control.RollbackPath, "Put an earlier state of the configuration file into force, and write it"),
		func(by Asker, in *struct{ Body control.Rollback }) (control.Changed, error) {
			return s.Rollback(by, in.Body)
		})
	changeBy(api, describe("post-save", http.MethodPost, control.SavePath, "Write to the configuration file what was changed until the next start only"),
		func(by Asker, in *struct{ Body control.Save }) (control.Changed, error) { return s.Save(by, in.Body) })
}
