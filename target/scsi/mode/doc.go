// Package mode has the mode pages (SPC-4 clause 7.5, SBC-3 clause 6.5) as bytes: what MODE
// SENSE answers and what MODE SELECT may change, of a snapshot of a logical unit.
package mode
