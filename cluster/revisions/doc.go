// Package revisions is the configuration that the nodes of a cluster have in common: a text,
// of which the cluster's state has the last revisions.
//
// A new revision is proposed first. All living nodes say what it would do there, or why it
// cannot be; then it is written by one transaction, and the nodes follow. The package knows
// nothing of what is in the text, or in a verdict.
package revisions
