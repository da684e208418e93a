// Package images keeps what a store held at moments beside the store: its snapshots. A store
// that can is a Source. For files it is done by sharing blocks (FICLONE of xfs and btrfs);
// a store that has snapshots of its own implements Images by them.
package images
