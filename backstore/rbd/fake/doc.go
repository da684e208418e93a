// Package fake is a Ceph cluster inside the process, for tests: images, their locks, the
// blocklist, and what librbd does with them. Operations end on goroutines of the cluster, in
// any order, after a delay or when a test says so; the race detector sees software that
// touches what is the library's.
//
// It is as unkind as the cluster: what an instance on the blocklist asks fails with
// ESHUTDOWN, writes without the lock of a locked image fail with EROFS, a lock outlives its
// dead owner, and whoever opened an image hears of a new size.
package fake
