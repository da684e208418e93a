// Package sense has sense data (SPC-4 clause 4.5): the sense keys, the additional sense
// codes, the values that commands end with, and both formats in which initiators read
// them. It is pure: what a store's error or a logical unit's state means in these
// words is said in package scsi.
package sense
