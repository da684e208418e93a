// Package pshift is pShift's division of tokens over servers: an Instance is allocated by
// demand and then shifted away from overloaded servers, over the token movement map. The
// Controller does so every redistribution interval, for reservations and then for limits.
//
// The paper's scheduler on each server, Algorithm 1, is scheduler.Dispatcher.
package pshift
