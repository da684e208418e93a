// Package trust says who else may change what a path leads to.
//
// Whoever may write to a directory may put another file, a link or a pipe under any
// name in it. So a file is as safe as the least safe of the directories that lead to
// it, symbolic links included: these are followed here as the kernel does, one name
// at a time. Where nobody else may change any of that, no other process can change
// what is found between two looks either.
package trust
