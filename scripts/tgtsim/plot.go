package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"lunar/scripts/sim/experiment"
)

// Size of a figure's file.
const (
	plotWidth  = 16 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter
)

// drawAll writes the figures into dir; none if dir is "".
func drawAll(dir string, figures []experiment.Figure) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	for i := range figures {
		if err := draw(dir, &figures[i]); err != nil {
			return fmt.Errorf("plot %s: %w", figures[i].Name, err)
		}
	}
	return nil
}

// draw writes one figure as NAME.svg.
func draw(dir string, f *experiment.Figure) error {
	p := plot.New()
	p.Title.Text = f.Title
	p.X.Label.Text = f.X
	p.Y.Label.Text = f.Y
	p.Legend.Top = true
	if f.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if f.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	p.Add(plotter.NewGrid())
	for i, s := range f.Series {
		if err := addLine(p, i, s); err != nil {
			return err
		}
	}
	makeRoom(p, f)
	return p.Save(plotWidth, plotHeight, filepath.Join(dir, f.Name+".svg"))
}

// makeRoom raises the upper end of the Y axis for the legend, line by line.
func makeRoom(p *plot.Plot, f *experiment.Figure) {
	share := 1 + 0.08*float64(len(f.Series))
	if f.LogY {
		share = math.Pow(p.Y.Max/p.Y.Min, share-1)
	}
	p.Y.Max *= share
}

func addLine(p *plot.Plot, index int, s experiment.Series) error {
	points := make(plotter.XYs, len(s.Points))
	for i, q := range s.Points {
		points[i] = plotter.XY{X: q.X, Y: q.Y}
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Dashes = plotutil.Color(index), plotutil.Dashes(index/7)
	marks.Color, marks.Shape = plotutil.Color(index), plotutil.Shape(index)
	marks.Radius = vg.Points(2)
	p.Add(line, marks)
	p.Legend.Add(s.Name, line, marks)
	return nil
}
