// Package conf is the configuration of a Lunar server: the model, its YAML
// form, the rules that it must satisfy, and the defaults.
//
// A configuration goes three steps, each in its own files:
//
//	YAML text -> decode*.go   -> Config as written, with a position for every key
//	          -> validate*.go -> every rule that joins two objects
//	          -> normal.go    -> the normal form: sorted, inherited values filled in
//
// All problems of a file are collected before any is reported, and each says
// where it stands, which key it concerns, what was found and what was
// expected. No line of a file is ever quoted, and of its values only what cannot
// be a secret (quote.go).
//
// Two configurations mean the same exactly when their normal forms are equal
// (reflect.DeepEqual), whatever the order and the spelling of the files.
package conf
