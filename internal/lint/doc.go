// Package lint holds the project's own rules as tests: which package may
// import which, that every exported name is documented, how long files and
// functions may get, and which names and texts are not used.
package lint
