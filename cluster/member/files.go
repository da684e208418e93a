package member

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"lunar/cluster/etcd"
	"lunar/internal/durable"
)

// Dir is the directory of a member. It is its owner's alone: it has the keys of the
// cluster.
type Dir string

// Files of a Dir.
const (
	settingsFile  = "member.json"
	authorityFile = "ca.crt"
	signingFile   = "ca.key"
	ownFile       = "node.crt"
	ownKeyFile    = "node.key"
	etcdFile      = "etcd.json" // etcd's configuration, written at each start
	dataDir       = "data"
	lockFile      = "lock"
	socketFile    = "keeper.sock"
)

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Socket is where the keeper of the directory is told of leases (etcd.Options.Guard).
func (d Dir) Socket() string { return d.path(socketFile) }

// DefaultPort is the first of a member's three ports.
const DefaultPort = 7421

// Node says who a member is, and where others reach it.
type Node struct {
	Name    string `json:"name"`    // in the cluster
	Address string `json:"address"` // IP address or host name
	Port    int    `json:"port"`
}

func (n Node) at(port int) string { return net.JoinHostPort(n.Address, strconv.Itoa(port)) }

// peer, client and joining are where the three ports are.
func (n Node) peer() string    { return "https://" + n.at(n.Port) }
func (n Node) client() string  { return "https://" + n.at(n.Port+1) }
func (n Node) joining() string { return n.at(n.Port + 2) }

// Pace is how soon etcd notices that its leader is gone.
type Pace struct {
	Tick     time.Duration `json:"tick"`     // between heartbeats of the leader
	Election time.Duration `json:"election"` // without a heartbeat until there is an election: at least five ticks
}

// DefaultPace has a new leader within a second of the death of the old one.
var DefaultPace = Pace{Tick: 50 * time.Millisecond, Election: 500 * time.Millisecond}

// DefaultQuota is how many bytes etcd's file may have. A cluster of 16 nodes and 1,000
// volumes needs some MiB.
const DefaultQuota = 256 << 20

// Settings are what a member is started with.
type Settings struct {
	Version int    `json:"version"`
	Cluster string `json:"cluster"`
	Node    Node   `json:"node"`
	Pace    Pace   `json:"pace"`
	Quota   int64  `json:"quota"` // bytes
	// Members are where the others' etcd is reached, by the names of members, as of when
	// this one was made: etcd knows more once it has started.
	Members map[string]string `json:"members"`
	// Clients are where clients reach the others, as of when the member ran last.
	Clients []string `json:"clients,omitempty"`
	// Joined: there is a cluster that has this member. Without its data it then begins no other
	// one, which would be as empty, and answer as well.
	Joined bool `json:"joined"`
}

const settingsVersion = 1

// ErrNoMember says that a directory has no member.
var ErrNoMember = errors.New("there is no member of a cluster (lunar cluster init, or join, makes one)")

// Settings reads them. It fails with ErrNoMember.
func (d Dir) Settings() (s Settings, err error) {
	text, err := durable.Read(d.path(settingsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("%s: %w", d, ErrNoMember)
	case err != nil:
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s: %w", d.path(settingsFile), err)
	}
	if s.Version != settingsVersion {
		return s, fmt.Errorf("%s: found version %d, expected %d", d.path(settingsFile), s.Version, settingsVersion)
	}
	return s, nil
}

// vacant fails if the directory has a member.
func (d Dir) vacant() error {
	s, err := d.Settings()
	switch {
	case errors.Is(err, ErrNoMember):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s has a member already, node %s of cluster %s: move the directory away if nobody needs that any more", d, s.Node.Name, s.Cluster)
}

// writeJSON writes a file, unless it is so already: a disk may have no room.
func (d Dir) writeJSON(name string, value any) error {
	text, err := json.MarshalIndent(value, "", "\t")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if was, err := durable.Read(d.path(name)); err == nil && bytes.Equal(was, text) {
		return nil
	}
	return durable.Replace(d.path(name), text)
}

// lay writes the files of a new member, the settings last: without them there is none.
func (d Dir) lay(s Settings, files map[string][]byte) error {
	if err := d.vacant(); err != nil {
		return err
	}
	if err := d.make(); err != nil {
		return err
	}
	for name, text := range files {
		if err := durable.Replace(d.path(name), text); err != nil {
			return err
		}
	}
	return d.writeJSON(settingsFile, s)
}

// make makes the directory; root makes it for the owner of the one that it is in.
func (d Dir) make() error {
	if err := durable.MakeDir(string(d)); err != nil || os.Geteuid() != 0 {
		return err
	}
	parent, err := os.Stat(filepath.Dir(string(d)))
	if err != nil {
		return err
	}
	st := parent.Sys().(*syscall.Stat_t)
	return os.Chown(string(d), int(st.Uid), int(st.Gid))
}

// Options are those of a State by the member of the directory, and by others when it does
// not answer.
func (d Dir) Options() (etcd.Options, error) {
	s, err := d.Settings()
	if err != nil {
		return etcd.Options{}, err
	}
	settings, err := d.TLS()
	return etcd.Options{
		Members: append([]string{s.Node.client()}, s.Clients...), TLS: settings,
		Discover: true, Guard: d.Socket(),
	}, err
}

// LinkAddress is where the member's node is reached by the others' links, unless its configuration
// says otherwise: at the port behind the member's three.
func (d Dir) LinkAddress() (string, error) {
	s, err := d.Settings()
	return s.Node.at(s.Node.Port + 3), err
}

// TLS is as whom the node appears to etcd and to other nodes, and whom it believes.
func (d Dir) TLS() (*tls.Config, error) {
	own, err := d.certificate()
	if err != nil {
		return nil, err
	}
	a, err := d.authority()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates:         []tls.Certificate{*own},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.certificate() },
		RootCAs:              a.pool(), MinVersion: tls.VersionTLS13,
	}, nil
}

// certificate is the node's own, which may have been renewed since it was read last.
func (d Dir) certificate() (*tls.Certificate, error) {
	own, err := tls.LoadX509KeyPair(d.path(ownFile), d.path(ownKeyFile))
	return &own, err
}

// etcdSettings is etcd's configuration, which is YAML, of which JSON is a part.
func (d Dir) etcdSettings(s Settings) map[string]any {
	members := s.Node.Name + "=" + s.Node.peer()
	for name, peer := range s.Members {
		members += "," + name + "=" + peer
	}
	state := "new"
	if s.Joined {
		state = "existing"
	}
	secured := map[string]any{
		"cert-file": d.path(ownFile), "key-file": d.path(ownKeyFile),
		"trusted-ca-file": d.path(authorityFile), "client-cert-auth": true,
		"skip-client-san-verification": true, // a node may have more addresses than it names
	}
	return map[string]any{
		"name": s.Node.Name, "data-dir": d.path(dataDir),
		"listen-peer-urls": s.Node.peer(), "initial-advertise-peer-urls": s.Node.peer(),
		"listen-client-urls": s.Node.client(), "advertise-client-urls": s.Node.client(),
		"initial-cluster": members, "initial-cluster-state": state, "initial-cluster-token": s.Cluster,
		"heartbeat-interval": s.Pace.Tick.Milliseconds(), "election-timeout": s.Pace.Election.Milliseconds(),
		"quota-backend-bytes":       s.Quota,
		"auto-compaction-mode":      "revision",
		"auto-compaction-retention": "10000",
		"max-learners":              8,
		"client-transport-security": secured, "peer-transport-security": secured,
		"tls-min-version": "TLS1.2",
		"log-level":       "warn", "log-outputs": []string{"stderr"},
	}
}
