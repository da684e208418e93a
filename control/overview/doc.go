// Package overview makes what there is to see of a server from two of its states: rates and
// shares of the time between them, and answers to why something is slow, in sentences.
// Everything is a pure function of the two; lunar/control/server takes the states.
package overview
