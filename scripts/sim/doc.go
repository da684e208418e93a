// Package sim runs the project's own decision code in virtual time. The packages
// below it are a deterministic event kernel, a description of experiments, and
// one package for each line of work whose published results stand beside what is
// measured here. Only times are modelled; what is decided is decided by the
// packages that the daemon uses.
//
// Model constants that were fitted to a published result are named as such where
// they are declared: of rows that rest on them, order and trend are a test, the
// absolute values are not.
package sim
