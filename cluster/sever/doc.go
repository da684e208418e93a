// Package sever has what one node has relayed to another one end by the cluster's state, where there is
// no link between the two: who has relayed it knows then that nothing of it runs any more.
package sever
