package plm

import "slices"

// Class is the importance of a read.
type Class uint8

// The classes, the most important first.
const (
	High Class = iota
	Medium
	Low
	classes
)

// Counts are numbers of commands by class.
type Counts [classes]int64

// weights divide what several classes want.
var weights = [classes]float64{4, 2, 1}

// Sum returns the commands of all classes.
func (c Counts) Sum() (n int64) {
	for _, v := range c {
		n += v
	}
	return n
}

// Divide gives n commands to the classes, 4:2:1.
func Divide(n int64) Counts {
	var exact [classes]float64
	for i, w := range weights {
		exact[i] = float64(n) * w / 7
	}
	return whole(exact)
}

// whole makes integers of what the classes get: floors, then one more for the largest
// remainders, the higher class on ties. None is lost but a part of one.
func whole(exact [classes]float64) (c Counts) {
	const slack = 1e-6 // of sums that floating point leaves just below an integer
	var rest [classes]float64
	sum := slack
	order := [classes]Class{High, Medium, Low}
	for i, v := range exact {
		sum += v
		c[i] = int64(v + slack)
		rest[i] = v - float64(c[i])
	}
	slices.SortStableFunc(order[:], func(a, b Class) int {
		switch {
		case rest[a] > rest[b]+slack:
			return -1
		case rest[b] > rest[a]+slack:
			return 1
		}
		return 0
	})
	left := int64(sum) - c.Sum()
	for i := 0; left > 0; i, left = i+1, left-1 {
		c[order[i%len(order)]]++
	}
	return c
}
