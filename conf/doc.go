// Package conf is the configuration of a Lunar server: the model, its YAML
// form, the rules that it must satisfy, and the defaults.
//
// A configuration goes three steps, each in its own files:
//
//	YAML text -> decode*.go   -> Config as written, with a position for every key
//	          -> validate*.go -> every rule that joins two objects
//	          -> normal.go    -> the normal form: sorted, inherited values filled in
//
// Files use each other in one direction. The model and its values (model.go, size.go,
// secret.go, rate.go) know nothing of YAML. The file of a section (decode_volume.go)
// uses the walk over the syntax tree (decode.go, scalar.go), and no rule that joins
// objects. Finding objects (find.go), printing (form.go, print.go), comparing (diff.go,
// plan.go) and judging changes (impact.go) are about normal forms.
//
// All problems of a file are collected before any is reported, and each names
// its place, its key, the value found and the value expected. No line of a file is
// ever quoted, and a value only if it cannot be a secret (quote.go).
//
// Two configurations mean the same exactly when their normal forms are equal
// (reflect.DeepEqual), whatever the order and the spelling of the files.
package conf
