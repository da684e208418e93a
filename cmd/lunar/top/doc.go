// Package top shows a running server on a terminal, a second at a time: what initiators
// ask for and get, and why no more. All figures are those of the control API's overview.
// The state of the screen is a pure function of keys and overviews; bubbletea has the
// terminal.
package top
