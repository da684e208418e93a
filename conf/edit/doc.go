// Package edit changes the text of a configuration so that it means something else,
// and leaves everything else in it as it is: comments, order, quotes, indentation.
//
// A Document is a text with its Tree: what it says, as JSON has it. Whoever wants a
// change makes another tree (Set, Merge, Remove) and asks for a text of it
// (Document.Become), which differs from the old one where the trees differ. The package
// knows of the configuration only how its lists name their elements (keys.go); what may
// be in it is conf.Parse's affair.
//
// Tokens come from goccy/go-yaml's lexer. The syntax tree above them is the package's
// own (layout.go): the library's has no ends of values, and prints comments elsewhere
// than they were.
package edit
