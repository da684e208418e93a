package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// curve is one line of a figure.
type curve struct {
	name   string
	points plotter.XYs
}

// slicesPerPoint keeps the figures small.
const slicesPerPoint = 5

// drawQoS writes the figures of all results into dir.
func drawQoS(dir string, results []qosResult, n noisyRuns) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	for _, r := range results {
		if !r.scenario.figure {
			continue
		}
		if err := drawCurves(dir, r.scenario.name, r.scenario.title, "s", "commands per second", rateCurves(r.outcome)); err != nil {
			return err
		}
	}
	return drawCurves(dir, "noisy", "Latency of the reserved initiator", "percentile", "ms", []curve{
		latencyCurve("alone", n.alone), latencyCurve("with rules", n.ruled), latencyCurve("without rules", n.unscheduled),
	})
}

// rateCurves are the initiators' rates over time.
func rateCurves(o *qosOutcome) []curve {
	step := (qosSlice * slicesPerPoint).Seconds()
	curves := make([]curve, len(o.slices))
	for i := range o.slices {
		curves[i].name = fmt.Sprintf("C%d", i+1)
		for at, n := range grouped(o.slices[i], slicesPerPoint) {
			curves[i].points = append(curves[i].points, plotter.XY{X: float64(at+1) * step, Y: float64(n) / step})
		}
	}
	return curves
}

func latencyCurve(name string, o *qosOutcome) curve {
	c := curve{name: name}
	for p := 1.0; p < 100; p += 2 {
		c.points = append(c.points, plotter.XY{X: p, Y: float64(o.latency[0].ValueAtQuantile(p)) / float64(time.Millisecond)})
	}
	c.points = append(c.points, plotter.XY{X: 99.9, Y: float64(o.latency[0].ValueAtQuantile(99.9)) / float64(time.Millisecond)})
	return c
}

// drawCurves writes one figure as NAME.svg.
func drawCurves(dir, name, title, x, y string, curves []curve) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Y.Min, p.Legend.Top = 0, true
	for i, c := range curves {
		line, err := plotter.NewLine(c.points)
		if err != nil {
			return fmt.Errorf("figure %s: %w", name, err)
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/7)
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	p.Y.Max *= 1 + 0.06*float64(len(curves))
	if err := p.Save(16*vg.Centimeter, 9*vg.Centimeter, filepath.Join(dir, name+".svg")); err != nil {
		return fmt.Errorf("figure %s: %w", name, err)
	}
	return nil
}
