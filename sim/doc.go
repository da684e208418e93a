// Package sim runs the project's own decision code in virtual time: a
// deterministic event kernel, stations that take time, seeded generators, and
// experiments whose results stand beside the published ones. Only times are
// modelled; what is decided is decided by the packages that the daemon uses.
//
// Model constants that were fitted to a published result are named as such where
// they are declared: of rows that rest on them, order and trend are a test, the
// absolute values are not.
package sim
