// Package gotgtstore serves volumes from gotgt's backing stores, its drivers, and from
// anything else that implements its api.BackingStore.
//
// A driver may block in every call, so that each runs on a worker, and a read costs the
// copy and the allocation that the interface asks for. There is no Discard, because
// drivers may take Unmap and do nothing, and nothing is atomic; Map takes all for
// provisioned, WriteZeroes writes zeroes, and a FUA write is followed by the DataSync of
// its range.
//
// A driver neither locks its file nor knows who else has changed it. The package opens
// the file besides, as a file store, for that: lock, identity, stamps, size and
// interrupted atomic writes are that store's (file.go), the data go through the driver.
package gotgtstore
