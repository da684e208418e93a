// Package lint holds the project's own rules as tests: permitted imports,
// documentation of every exported name, the length of files and functions, and
// names and texts that must not be used.
package lint
