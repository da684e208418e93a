package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/cluster/member"
	"lunar/conf"
	"lunar/internal/cli"
)

// memberDir is where a node's member of the cluster's own etcd is.
type memberDir struct {
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
}

func (k memberDir) dir() (member.Dir, error) {
	dir, err := conf.StateDir(k.StateDir)
	return member.Dir(filepath.Join(dir, "etcd")), err
}

// ask asks the cluster as the node does.
func (k memberDir) ask(do func(member.Dir, member.Settings, *etcd.State) error) error {
	d, err := k.dir()
	if err != nil {
		return err
	}
	s, err := d.Settings()
	if err != nil {
		return err
	}
	o, err := d.Options()
	if err != nil {
		return err
	}
	o.Guard = ""
	state, err := etcd.Open(o)
	if err != nil {
		return err
	}
	defer state.Close()
	return whatToStart(d, do(d, s, state))
}

// whatToStart adds to an error what makes the state answer, if nobody does.
func whatToStart(d member.Dir, err error) error {
	switch {
	case !errors.Is(err, cluster.ErrNoQuorum):
		return err
	case d.Runs():
		return fmt.Errorf("%w; lunar-etcd runs on this node, and has to on most of the others", err)
	}
	return fmt.Errorf("%w; lunar-etcd does not run on this node: systemctl start lunar-etcd", err)
}

// newMember is what a node is called, and where the others reach it.
type newMember struct {
	memberDir `embed:""`
	Node      string `placeholder:"NAME" help:"Name of this node in the cluster. Default: the machine's name."`
	Address   string `required:"" placeholder:"ADDRESS" help:"Address by which the other nodes reach this one."`
	Port      int    `default:"7421" help:"First of the three TCP ports in a row that etcd uses at the address: between its members, for nodes, for nodes that join."`
}

func (k newMember) node() (member.Node, error) {
	name := k.Node
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return member.Node{}, err
		}
		name, _, _ = strings.Cut(host, ".")
	}
	return member.Node{Name: name, Address: k.Address, Port: k.Port}, nil
}

// begun tells what comes next, and of an address that looks right here alone, as a machine's own name may
// lead to 127.0.1.1 there.
func (k newMember) begun(c cli.Console, d member.Dir, name, node, what string) error {
	if at, err := net.ResolveIPAddr("ip", k.Address); err == nil && at.IP.IsLoopback() {
		fmt.Fprintf(c.Err, "warning: address %s leads to this machine alone: nodes on other machines cannot reach this one\n", k.Address)
	}
	_, err := fmt.Fprintf(c.Out, `%s in %s. Start its etcd by
  systemctl start lunar-etcd        (without systemd: lunar-etcd run --dir %s)
The server takes part once it is restarted with this in its configuration; a witness has no server:
  cluster: {name: %s, node: %s}
`, what, d, d, name, node)
	return err
}

type clusterInitCommand struct {
	newMember `embed:""`
	Name      string        `arg:"" help:"Name of the cluster, which never changes."`
	Tick      time.Duration `default:"50ms" help:"Time between two heartbeats of etcd's leader: more than a round trip between the nodes."`
	Election  time.Duration `default:"500ms" help:"Time without a heartbeat after which there is another leader: at least five ticks, and longer than nodes' disks stall."`
	Quota     string        `default:"256MiB" help:"The most that the cluster's state may take on each node's disk."`
}

// Run makes the first member.
func (k clusterInitCommand) Run(_ context.Context, c cli.Console) error {
	quota, err := conf.ParseSize(k.Quota)
	if err != nil {
		return usage(err)
	}
	n, err := k.node()
	if err != nil {
		return err
	}
	d, err := k.dir()
	if err != nil {
		return err
	}
	if err := d.Init(k.Name, n, member.Pace{Tick: k.Tick, Election: k.Election}, int64(quota)); err != nil {
		return err
	}
	return k.begun(c, d, k.Name, n.Name, fmt.Sprintf("made the first node of cluster %s, %s,", k.Name, n.Name))
}

type clusterTokenCommand struct {
	memberDir `embed:""`
	For       time.Duration `default:"1h" help:"How long the token can be used."`
}

// Run prints a token.
func (k clusterTokenCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(d member.Dir, _ member.Settings, state *etcd.State) error {
		token, err := d.NewToken(ctx, state, k.For)
		if err == nil {
			_, err = fmt.Fprintln(c.Out, token)
		}
		return err
	})
}

type clusterJoinCommand struct {
	newMember `embed:""`
	Token     string        `arg:"" help:"What lunar cluster token has printed on a node; - reads it from standard input."`
	Wait      time.Duration `default:"3m" help:"How long to ask again where members do not answer, or are changing."`
}

// Run makes a member of a cluster that is there.
func (k clusterJoinCommand) Run(ctx context.Context, c cli.Console) error {
	text := k.Token
	if text == "-" {
		if _, err := fmt.Scan(&text); err != nil {
			return err
		}
	}
	n, err := k.node()
	if err != nil {
		return err
	}
	d, err := k.dir()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, k.Wait)
	defer cancel()
	if err := d.Join(ctx, text, n, func(why error) { fmt.Fprintf(c.Err, "not yet, asking again: %v\n", why) }); err != nil {
		return err
	}
	s, err := d.Settings()
	if err != nil {
		return err
	}
	return k.begun(c, d, s.Cluster, n.Name, fmt.Sprintf("node %s has joined cluster %s,", n.Name, s.Cluster))
}

type clusterLeaveCommand struct {
	memberDir `embed:""`
	Node      string `arg:"" optional:"" help:"The node that leaves, living or dead. Default: this one."`
}

// Run removes a member.
func (k clusterLeaveCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(_ member.Dir, s member.Settings, state *etcd.State) error {
		node := k.Node
		if node == "" {
			node = s.Node.Name
		}
		if err := member.Leave(ctx, state, s.Cluster, node); err != nil {
			return err
		}
		_, err := fmt.Fprintf(c.Out, "node %s is no member of cluster %s any more\n", node, s.Cluster)
		return err
	})
}

type clusterBackupCommand struct {
	memberDir `embed:""`
	File      string `arg:"" type:"path" help:"File to write. It is as secret as the cluster's state."`
}

// Run writes the cluster's state to a file.
func (k clusterBackupCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(_ member.Dir, s member.Settings, state *etcd.State) error {
		keys, _, err := member.Backup(ctx, state, s.Cluster, k.File)
		if errors.Is(err, cluster.ErrNoQuorum) {
			return fmt.Errorf("%w; if the majority is lost for good, lunar-etcd backup writes what this node's member has", err)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Out, "%s: %s of cluster %s\n", k.File, cli.Counted(keys, "key"), s.Cluster)
		return err
	})
}

type clusterRestoreCommand struct {
	memberDir `embed:""`
	File      string `arg:"" type:"path" help:"File that lunar cluster backup has written."`
}

// Run writes a file's contents into a new cluster.
func (k clusterRestoreCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(_ member.Dir, s member.Settings, state *etcd.State) error {
		r, err := member.Restore(ctx, state, s.Cluster, k.File)
		if err != nil {
			return errors.Join(err, fmt.Errorf("%s written before that", cli.Counted(r.Written, "key")))
		}
		_, err = fmt.Fprintf(c.Out, "%s written to cluster %s; %d of the file there already, with the same values\n", cli.Counted(r.Written, "key"), s.Cluster, r.There)
		return err
	})
}
