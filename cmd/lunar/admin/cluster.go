package admin

type clusterCommand struct {
	Init    clusterInitCommand    `cmd:"" help:"Make the first node of a new cluster: its member of the cluster's own etcd, in the state directory."`
	Token   clusterTokenCommand   `cmd:"" help:"Make and print a token by which one node can join. It is a secret."`
	Join    clusterJoinCommand    `cmd:"" help:"Make a node of a cluster that is there, by a token."`
	Leave   clusterLeaveCommand   `cmd:"" help:"Remove a node, living or dead, from the cluster's etcd."`
	Backup  clusterBackupCommand  `cmd:"" help:"Write the cluster's state to a file, without what ends with its nodes."`
	Restore clusterRestoreCommand `cmd:"" help:"Write the contents of a backup into a new cluster of the same name."`
}
