package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/control"
	"lunar/scripts/evidence/notes"
)

// loadedConfig has one volume that writes back and one that does not.
const loadedConfig = `# made by evidence-snapshots
cache: {size: 64MiB, segment: MEMORY/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  back: {type: file, path: DISK/back.img, size: SIZE, write: back, cache: {dirty-limit: 1MiB}}
  plain: {type: file, path: DISK/plain.img, size: SIZE DIRECT}
targets: {"` + target + `": {luns: {0: back, 1: plain}}}
`

// volumes are those of the configuration, by LUN.
var volumes = []string{"back", "plain"}

// killing is a server that is killed amid snapshots of volumes that are written to.
type killing struct {
	*server
	loads  []*load // by LUN
	random *rand.Rand
	within time.Duration // in which a kill comes

	held                   []time.Duration
	kills, survived, whole int      // kills; snapshots amid them that there are; images judged
	refused                []string // why
	wrong                  []string
}

// newKilling starts a server, and writers of both volumes, which have further keys.
func newKilling(ctx context.Context, o options, system, keys string) (k *killing, err error) {
	k = &killing{random: rand.New(rand.NewPCG(19, 7)), within: 50 * time.Millisecond}
	if k.server, err = newServer(o, system, 16*gib, strings.ReplaceAll(loadedConfig, "SIZE", strconv.Itoa(o.MiB)+"MiB"+keys)); err != nil {
		return nil, err
	}
	for lun := range volumes {
		k.loads = append(k.loads, &load{ledger: newLedger(o.MiB * mib / blockSize), lun: uint64(lun), writers: 4})
	}
	if err = k.start(); err == nil {
		err = k.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

func (k *killing) begin(ctx context.Context) (err error) {
	for _, l := range k.loads {
		err = errors.Join(err, l.begin(ctx, k.portal))
	}
	return err
}

func (k *killing) end() {
	for _, l := range k.loads {
		l.end()
	}
}

// kills makes snapshots of both volumes at once, and has the server killed amid some of them.
func kills(ctx context.Context, o options, system string, count int) (r result, err error) {
	k, err := newKilling(ctx, o, system, "")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	before := k.wrote()
	for i := range count {
		time.Sleep(time.Duration(k.random.IntN(20)) * time.Millisecond)
		one := k.snapshot
		if i%o.Every == o.Every-1 {
			one = k.killed
		}
		if err := one(ctx, fmt.Sprintf("s%04d", i)); err != nil {
			return r, fmt.Errorf("snapshot %d: %w\nthe server said\n%s", i, err, tail(k.Output.String()))
		}
	}
	var figures [][]string
	for lun, l := range k.loads {
		median, p99, longest := l.figures()
		figures = append(figures, []string{volumes[lun], median.Round(time.Microsecond).String(), p99.Round(time.Microsecond).String(), longest.Round(time.Millisecond / 10).String()})
	}
	k.end()
	there, err := k.api.Snapshots(ctx, "back")
	if err != nil {
		return r, err
	}
	return k.result(o, system, count, len(there), k.wrote()-before, figures), nil
}

func (k *killing) wrote() (n int64) {
	for _, l := range k.loads {
		n += l.wrote.Load()
	}
	return n
}

func (k *killing) result(o options, system string, count, there int, wrote int64, figures [][]string) (r result) {
	for _, l := range k.loads {
		for _, err := range l.errs {
			k.wrong = append(k.wrong, err.Error())
		}
	}
	slices.Sort(k.held)
	r.How = fmt.Sprintf("A server with two volumes of %d MiB on %s, one with `write: back`, one with `write: through` and, on xfs, direct I/O, in a file behind a loop device. Each volume has 4 writers with writes of 4 KiB at random places, one at a time each; one write in 16 is read back. A snapshot of both at one moment is asked for after 0 to 20 ms, again and again; all are kept. Each %dth time the server is killed (`kill -9`) at any time from the request to a quarter after the end of one like it, and started again. Each image that there is then is read from its file and judged by the ledger: everything is in it that was acknowledged before the request, nothing that began after the answer or the kill, and no write without those that were acknowledged before it began. Longest command: the slowest that an initiator had while nobody killed the server, or that outlived a snapshot.", o.MiB, system, o.Every)
	r.Columns = []string{"volume", "median of a command", "p99", "longest"}
	r.Rows = figures
	wrong := "none"
	if len(k.wrong) > 0 {
		wrong = fmt.Sprintf("%d, the first: %s", len(k.wrong), k.wrong[0])
	}
	r.Facts = []notes.Fact{
		notes.Found("snapshots asked for; kills amid them; those of them that are there all the same", fmt.Sprintf("%d; %d; %d", count, k.kills, k.survived), k.kills == count/o.Every),
		notes.Found("snapshots that were refused, because commands under way did not end in time", refusedOf(k.refused), len(k.refused) < count/20),
		notes.Found("snapshots of the first volume in the end", strconv.Itoa(there), there == count-k.kills+k.survived-len(k.refused)),
		notes.Found("images that the ledger has judged", strconv.Itoa(k.whole), k.whole == 2*there),
		notes.Found("images and reads that were wrong, and files half-made after a start", wrong, len(k.wrong) == 0),
		notes.Found("writes that were acknowledged", strconv.FormatInt(wrote, 10), wrote > int64(count)),
	}
	if len(k.held) > 0 {
		longest := k.held[len(k.held)-1]
		r.Facts = append(r.Facts, notes.Found("commands held for a snapshot of both: median, p99, longest (deadline 10 s)",
			fmt.Sprintf("%v, %v, %v", k.held[len(k.held)/2], k.held[len(k.held)*99/100], longest), o.Untimed || longest < control.DefaultHold))
	}
	return r
}

func refusedOf(all []string) string {
	if len(all) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, the first: %s", len(all), strings.ReplaceAll(all[0], "\n", "; "))
}

// snapshot makes one of all volumes, and has it judged.
func (k *killing) snapshot(ctx context.Context, name string) error {
	asked, began := k.ticks(), time.Now()
	made, err := k.api.Snapshot(ctx, volumes[0], control.SnapshotRequest{Name: name, With: volumes[1:]})
	if refused := (*control.Refusal)(nil); errors.As(err, &refused) {
		return k.refusal(name, err)
	}
	if err != nil {
		return err
	}
	held, err := time.ParseDuration(made.Held)
	if err != nil {
		return err
	}
	k.held = append(k.held, held)
	k.within = time.Since(began) * 5 / 4
	return k.judge(name, asked, k.ticks())
}

// refusal notes that a busy machine has refused a snapshot, of which nothing is left then.
func (k *killing) refusal(name string, why error) error {
	k.refused = append(k.refused, why.Error())
	for _, volume := range volumes {
		half, err := k.halfMade(volume)
		if err != nil {
			return err
		}
		if _, err := os.Stat(k.image(volume, name)); len(half) > 0 || !errors.Is(err, os.ErrNotExist) {
			k.wrong = append(k.wrong, fmt.Sprintf("snapshot %s of volume %s was refused, and there is something of it", name, volume))
		}
	}
	return nil
}

// ticks are the moment of each volume's ledger.
func (k *killing) ticks() (all []uint64) {
	for _, l := range k.loads {
		all = append(all, l.tick())
	}
	return all
}

// judge has the ledgers judge the images of a name.
func (k *killing) judge(name string, asked, there []uint64) error {
	for lun, l := range k.loads {
		image, err := read(k.image(volumes[lun], name))
		if err != nil {
			return err
		}
		if err := l.judge(image, asked[lun], there[lun]); err != nil {
			k.wrong = append(k.wrong, fmt.Sprintf("snapshot %s of volume %s: %v", name, volumes[lun], err))
		}
		k.whole++
	}
	return nil
}

// killed is a snapshot that the server is killed amid. There are images of all volumes then,
// each of them whole, or of those that come first.
func (k *killing) killed(ctx context.Context, name string) error {
	asked := k.ticks()
	ended := make(chan error, 1)
	go func() {
		_, err := k.api.Snapshot(ctx, volumes[0], control.SnapshotRequest{Name: name, With: volumes[1:]})
		ended <- err
	}()
	time.Sleep(time.Duration(k.random.Int64N(int64(k.within))))
	if err := k.kill(); err != nil {
		return err
	}
	answer := <-ended
	k.end()
	k.kills++
	there := k.ticks()
	if err := k.start(); err != nil {
		return err
	}
	if err := k.begin(ctx); err != nil {
		return err
	}
	found := 0
	for lun, volume := range volumes {
		half, err := k.halfMade(volume)
		if err != nil {
			return err
		}
		for _, path := range half {
			k.wrong = append(k.wrong, "half-made after a start: "+path)
		}
		image, err := read(k.image(volume, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := k.loads[lun].judge(image, asked[lun], there[lun]); err != nil {
			k.wrong = append(k.wrong, fmt.Sprintf("snapshot %s of volume %s, killed: %v", name, volume, err))
		}
		found++
	}
	switch {
	case answer == nil && found < len(volumes):
		k.wrong = append(k.wrong, fmt.Sprintf("snapshot %s was answered, and there are %d of %d images", name, found, len(volumes)))
	case found == len(volumes):
		k.survived++
		k.whole += found
	case found > 0: // the server was killed between the names of two images, each of which is whole
		_, err := k.api.DeleteSnapshot(ctx, volumes[0], name)
		return err
	}
	return nil
}
