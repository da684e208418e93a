package main

import "context"

// cacheCommand measures the parts of the cache.
type cacheCommand struct {
	Mode     string `arg:"" optional:"" default:"full" enum:"quick,full" help:"quick: half a minute; full: for the record."`
	Document string `default:"docs/reports/performance-cache.md" help:"Document with the markers to write between; empty writes to standard output alone."`
	Tests    string `required:"" type:"existingdir" help:"Directory of cache.test, tier.test and segment.test, made by go test -c."`
}

var cacheRepeats = map[string]int{"quick": 3, "full": 5}

// Run measures and writes the document.
func (c *cacheCommand) Run(ctx context.Context, o *options) (err error) {
	order, sections := []string{"clock"}, map[string]string{"clock": clockText(coreClock())}
	for _, p := range parts {
		if !wanted(o, p.section) {
			continue
		}
		if sections[p.section], err = c.part(ctx, o, p); err != nil {
			return err
		}
		order = append(order, p.section)
	}
	return store(c.Document, order, sections)
}
