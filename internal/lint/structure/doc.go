// Package structure measures how packages are divided into files: which files depend on
// which, and which exported names other packages use. The lint tests keep the measure
// from growing, and scripts/structure writes docs/internals/structure.md with it.
package structure
