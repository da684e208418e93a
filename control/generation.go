package control

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// The paths of the configuration file's states.
const (
	GenerationsPath = "/v1/generations"
	GenerationPath  = "/v1/generations/{number}"
	RollbackPath    = "/v1/rollback"
	SavePath        = "/v1/save"
)

// Generation is a state that the configuration file has, or had.
type Generation struct {
	Number int       `json:"number" doc:"Counts up."`
	At     time.Time `json:"at" doc:"When it came about."`
	By     string    `json:"by" doc:"Who brought it about."`
	What   string    `json:"what" doc:"By what."`
	Now    bool      `json:"now" doc:"It is what the file has, as it was read last."`
	Text   string    `json:"text,omitempty" doc:"Of the file, without secrets; only where one is asked for."`
}

// GenerationList is the answer of GenerationsPath.
type GenerationList struct {
	Generations []Generation `json:"generations" nullable:"false" doc:"The last ones, the oldest first."`
}

// Rollback puts an earlier state of the configuration file into force, and writes it.
type Rollback struct {
	Generation int `json:"generation,omitempty" minimum:"0" doc:"Its number; absent: the one before the last."`
	Permissions
}

// Save writes to the configuration file what was changed until the next start only.
type Save struct {
	DryRun bool `json:"dryRun,omitempty" doc:"Show the changes without making them."`
}

// Generations asks for the last states of the configuration file.
func (c *Client) Generations(ctx context.Context) ([]Generation, error) {
	var list GenerationList
	err := c.Get(ctx, GenerationsPath, &list)
	return list.Generations, err
}

// Generation asks for one with its text.
func (c *Client) Generation(ctx context.Context, number int) (Generation, error) {
	var g Generation
	err := c.Get(ctx, pathOf(GenerationPath, "{number}", strconv.Itoa(number)), &g)
	return g, err
}

// Rollback puts an earlier state into force.
func (c *Client) Rollback(ctx context.Context, r Rollback) (Changed, error) {
	var out Changed
	err := c.send(ctx, http.MethodPost, RollbackPath, r, &out)
	return out, err
}

// Save writes to the file what was changed at run time.
func (c *Client) Save(ctx context.Context, s Save) (Changed, error) {
	var out Changed
	err := c.send(ctx, http.MethodPost, SavePath, s, &out)
	return out, err
}
