// Package shell writes command lines that a message tells somebody to copy.
package shell
