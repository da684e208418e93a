// Package offline is what an administrator does to the files of a server that does not
// run, or does not serve the volume in question.
package offline
