// Command multipath has Linux' multipath of the lab's guest use a volume of three servers on
// this host, moves the volume, kills and stops its owner under a checked load, and writes a
// page.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/site"
)

const (
	volumeBytes = 192 << 20
	diskBytes   = 64 << 20 // of blocks; a file system has the rest, as the lab's scenario says
)

type options struct {
	site.Options
	Run      string   `required:"" help:"The lab's run.sh."`
	Guest    string   `required:"" help:"Directory of the guest's program."`
	Logs     string   `required:"" help:"Directory of the lab's logs."`
	Moves    int      `default:"20" help:"Planned moves."`
	Kills    int      `default:"30" help:"Owners that are killed."`
	Stops    int      `default:"10" help:"Owners that are stopped for 25 s and go on."`
	Quorum   int      `default:"1" help:"Losses of two members of etcd."`
	Reserved int      `default:"5" help:"Owners that are killed while the guest has a persistent reservation."`
	Settings []string `default:"failback=immediate" help:"Settings of multipath besides those of the lab's scenario."`
}

func main() {
	var o options
	kong.Parse(&o)
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "multipath:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	s, err := site.New(o.Options, volumeBytes)
	if err != nil {
		return err
	}
	defer s.End()
	g, err := o.guest(s)
	if err != nil {
		return err
	}
	defer g.end()
	r := &run{options: o, site: s, guest: g}
	go g.watch()
	if err := r.all(); err != nil {
		return fmt.Errorf("%w\n%s", err, s.Logs())
	}
	return nil
}

// run is the site, and the guest that uses it.
type run struct {
	*options
	site  *site.Site
	guest *guest
	late  []string // events with gaps longer than they may be
	again int      // rounds that were made anew, for something stood still

	registered string // what became of reservations
}

func (r *run) all() error {
	if err := r.head(); err != nil {
		return err
	}
	failed := r.events()
	if failed == nil {
		failed = r.reserved()
	}
	return errors.Join(failed, r.judge())
}

func (r *run) head() error {
	ceph, _ := exec.Command("ceph", "--version").Output() // it has run before
	linux, err := r.guest.run(`echo "Linux $(uname -r), multipath-tools $(dpkg-query -Wf '${Version}' multipath-tools), open-iscsi $(dpkg-query -Wf '${Version}' open-iscsi)"`)
	if err != nil {
		return err
	}
	version, err := daemon.Version(r.Tgtd())
	if err != nil {
		return err
	}
	conf, err := r.guest.run("cat /etc/multipath.conf")
	if err != nil {
		return err
	}
	fmt.Printf("# Multipath\n\nWritten by `make evidence-multipath` on %s, with %s and %s: three servers, three members of etcd, a monitor and an OSD (memstore), on one machine with %d CPUs; and on it a guest with %s, whose hardware is emulated (QEMU without KVM). %s\n\n```\n%s```\n",
		time.Now().UTC().Format("2006-01-02"), strings.Join(strings.Fields(string(ceph) + " - -")[:3], " "), version, runtime.NumCPU(), strings.TrimSpace(linux), about, conf)
	return r.paths("At the beginning")
}

const about = "It is slow, and all share the CPUs: the row of nothing has the gaps of that alone. In the guest, processes write to blocks of the multipath device (8 commands under way, a third of them writes) and replace files on ext4 on it (3), all with O_DIRECT and O_SYNC, and compare what they read with a ledger of what was acknowledged. A gap is the longest time in a round in which none of their calls ended. A round ends when multipath uses all three paths again. The settings of multipath are those of docs/cluster.md; all others, also those of open-iscsi, are the defaults of their packages:"

// paths shows the guest's paths.
func (r *run) paths(when string) error {
	said, err := r.guest.run("multipath -ll")
	fmt.Printf("\n%s:\n\n```\n%s```\n", when, said)
	return err
}
