// Package memcopy copies to memory that the processor's cache probably does not hold,
// such as a block of a large cache.
//
// An ordinary copy first reads every line of the destination, only to write over it.
// The string instructions of processors that have fast ones (ERMS) do not: to 4 KiB
// that are in nobody's cache they take two thirds of the time, and no longer to
// memory that is (BenchmarkCopy). Whether they are fast is tried when the program starts,
// because an emulated processor says so and is not. Elsewhere Copy is an ordinary copy.
//
// StoreOrdered orders copies to memory that another process finds when this one is killed.
package memcopy
