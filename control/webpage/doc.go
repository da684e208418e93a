// Package webpage is the web page of a server: files that a browser loads, which then asks the
// control API with the token that somebody types in. The files are as they stand here, with
// no step between.
package webpage
