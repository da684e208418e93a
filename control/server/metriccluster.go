package server

import "lunar/control"

// eachCluster has the cluster, if the server is a node of one.
func eachCluster(s *control.Status, yield func(*control.Cluster, ...string)) {
	if s.Cluster != nil {
		yield(s.Cluster)
	}
}

var linkLabels = []string{"peer"}

// eachLink has how every other node is reached, if there are links.
func eachLink(s *control.Status, yield func(*control.ClusterLink, ...string)) {
	eachClusterNode(s, func(n *control.ClusterNode) {
		if n.Link != nil {
			yield(n.Link, n.Name)
		}
	})
}

func eachClusterNode(s *control.Status, do func(*control.ClusterNode)) {
	eachCluster(s, func(c *control.Cluster, _ ...string) {
		for i := range c.Nodes {
			do(&c.Nodes[i])
		}
	})
}

// eachClusterVolume has the volumes with owners that are configured here.
func eachClusterVolume(s *control.Status, yield func(*control.ClusterVolume, ...string)) {
	eachCluster(s, func(c *control.Cluster, _ ...string) {
		for i := range c.Volumes {
			if v := &c.Volumes[i]; v.Here != "" {
				yield(v, v.Name)
			}
		}
	})
}

// eachKept has the promises over all nodes where they are kept: one node tells of them, so that
// sums over nodes have them once.
func eachKept(s *control.Status, yield func(*control.ClusterPromiseTotals, ...string)) {
	eachCluster(s, func(c *control.Cluster, _ ...string) {
		if c.Promise != nil && c.Promise.Controller == c.Node {
			yield(c.Promise)
		}
	})
}

func eachKeptOf(s *control.Status, yield func(*control.ClusterNodeTotals, ...string)) {
	eachKept(s, func(p *control.ClusterPromiseTotals, _ ...string) {
		for i := range p.Nodes {
			yield(&p.Nodes[i], p.Nodes[i].Node)
		}
	})
}

var clusterMetrics = []metric{
	{"lunar_cluster_info", "", "Always 1; the labels name the cluster and this node.", gauge, []string{"cluster", "node"},
		func(s *control.Status, emit emitter) {
			eachCluster(s, func(c *control.Cluster, _ ...string) { emit(1, c.Name, c.Node) })
		}},
	{"lunar_cluster_nodes", "", "Nodes that live or are heard, and those that may own volumes, by state, as this node sees them.", gauge, []string{"state"},
		func(s *control.Status, emit emitter) {
			eachCluster(s, func(c *control.Cluster, _ ...string) {
				in := map[string]int{}
				for i := range c.Nodes {
					in[c.Nodes[i].State]++
				}
				for _, state := range control.NodeStates {
					emit(float64(in[state]), state)
				}
			})
		}},
	{"lunar_cluster_strangers", "", "Nodes whose volumes with owners have other serial numbers than on other nodes, as this node sees them.", gauge, nil,
		func(s *control.Status, emit emitter) {
			eachCluster(s, func(c *control.Cluster, _ ...string) { emit(float64(len(c.Strangers()))) })
		}},
	{"lunar_cluster_controller", "", "1 on the node that keeps the promises over all nodes, which alone tells lunar_cluster_promise metrics.", gauge, nil,
		func(s *control.Status, emit emitter) {
			eachCluster(s, func(c *control.Cluster, _ ...string) {
				emit(truth(c.Promise != nil && c.Promise.Controller == c.Node))
			})
		}},
	{"lunar_cluster_volume_owned", "", "1 if this node owns a volume with owners: exactly one node does, unless the volume is in flux.", gauge, volumeLabels,
		func(s *control.Status, emit emitter) {
			eachClusterVolume(s, func(v *control.ClusterVolume, labels ...string) {
				emit(truth(v.OwnedBy(s.Cluster.Node)), labels...)
			})
		}},
}
