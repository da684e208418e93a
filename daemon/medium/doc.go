// Package medium is what volumes are on: their files and devices, which are opened,
// measured and told from each other.
package medium
