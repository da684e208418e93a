// Package clustertable is how a cluster is told on a terminal: the lines and tables that
// lunar cluster status, lunar status and lunar top have in common.
package clustertable
