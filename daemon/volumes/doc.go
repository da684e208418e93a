// Package volumes is the volumes of a server: it judges what is at their paths before
// anything changes, opens their stores with encryption, cache and protection information
// around them, opens them anew, and keeps in the state directory what the next start has
// to know of each.
package volumes
