// Package cli is what the command line programs share: how a command line is run and
// ends, signals, tables and quantities in words.
package cli
