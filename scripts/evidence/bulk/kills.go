package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/control"
	"lunar/scripts/evidence/notes"
)

// killedSize is the volume's, so that a move takes some times as long as a start.
const killedSize = 192 * mib

const killedConfig = `# made by evidence-bulk
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {dense: {type: file, path: DIR/dense.img}}
targets: {"` + target + `": {luns: {0: dense}}}
`

// killing is two servers, of which one or the other is killed while a volume moves.
type killing struct {
	*pair
	random *rand.Rand
	whole  time.Duration // that a move takes whom nobody kills
	within time.Duration // in which a kill comes, so that few come too late
	moves  int           // that are complete
	now    *reception    // nil: the receiver has none

	amid     map[string]int // kills, by what was under way
	before   int64          // blocks that the journal had when this connection began
	repeated int64          // blocks that were stored though the journal had them
	lost     int            // kills after which the journal had fewer blocks
	told     int            // of what the receiver says
	wrong    []string
}

// kills has moves broken off by kill -9 of either side at any time. The same commands are
// given again after each.
func kills(ctx context.Context, o options) (r result, err error) {
	p, err := newPair(o, o.Memory, killedConfig)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	const seed = 17
	k := &killing{pair: p, random: rand.New(rand.NewPCG(seed, 1)), amid: map[string]int{}}
	if err := errors.Join(makeImage(k.source("dense"), killedSize, false), p.from.start(), p.to.start()); err != nil {
		return r, err
	}
	if err := k.undisturbed(ctx); err != nil {
		return r, err
	}
	k.within = k.whole
	ended := map[string]int{}
	for range o.Kills {
		who := "sender"
		if k.random.IntN(2) == 0 {
			who = "receiver"
		}
		if err := k.one(ctx, who); err != nil {
			return r, fmt.Errorf("kill of the %s: %w\nthe sender said\n%s\nthe receiver said\n%s", who, err, tail(p.from.Output.String()), tail(p.to.Output.String()))
		}
		ended[who]++
	}
	if err := k.undisturbed(ctx); err != nil {
		return r, err
	}
	r.How = fmt.Sprintf("A volume of %d MiB; a move of it takes %v when nobody disturbs it (both servers share what others leave of the CPUs). One side is killed (`kill -9`) at any time from when a send has begun to about when it ends, is started again, and the same commands are given again, until %d kills are done. A volume that is whole is compared, and another move begins. Seed %d.", killedSize/mib, k.whole.Round(time.Millisecond), o.Kills, seed)
	r.Columns = []string{"what was under way", "kills"}
	for _, what := range slices.Sorted(maps.Keys(k.amid)) {
		r.Rows = append(r.Rows, []string{what, strconv.Itoa(k.amid[what])})
	}
	r.Facts = []notes.Fact{
		notes.Found("kills of the sender, of the receiver", fmt.Sprintf("%d, %d", ended["sender"], ended["receiver"]), ended["sender"]+ended["receiver"] == o.Kills),
		notes.Found("moves that were completed, and whose bytes are equal", fmt.Sprintf("%d, %d", k.moves, k.moves-len(k.wrong)), k.moves > 0 && len(k.wrong) == 0),
		notes.Found("blocks that were stored though the journal had them", strconv.FormatInt(k.repeated, 10), k.repeated == 0),
		notes.Found("kills after which the journal had fewer blocks than before", strconv.Itoa(k.lost), k.lost == 0),
	}
	return r, nil
}

func tail(said string) string { return said[max(0, len(said)-4096):] }

// name is that of the volume at the receiver.
func (k *killing) name() string { return fmt.Sprintf("copy%d", k.moves) }

// undisturbed has the present move end, or another one.
func (k *killing) undisturbed(ctx context.Context) error {
	began, before := time.Now(), k.moves
	if err := k.begin(ctx); err != nil {
		return err
	}
	if err := k.idle(ctx); err != nil {
		return err
	}
	k.whole = time.Since(began)
	if err := k.taken(ctx); err != nil {
		return err
	}
	if k.moves == before {
		return errors.New("a move that nobody disturbed is not complete")
	}
	return nil
}

// begin has the receiver wait and the sender send, as before.
func (k *killing) begin(ctx context.Context) (err error) {
	for k.now == nil || k.now.at == "" {
		if k.now, err = k.receive(ctx, k.name(), false); err != nil {
			return err
		}
		if k.now.at == "" { // all of it was there
			if err := k.taken(ctx); err != nil {
				return err
			}
		}
	}
	k.before = k.noted()
	_, err = k.from.api.StartSend(ctx, "dense", control.Send{To: k.now.at, Key: k.key})
	return err
}

// noted counts the blocks that the journal has.
func (k *killing) noted() (n int64) {
	b, err := os.ReadFile(k.place(k.name()) + journal)
	if err != nil {
		return 0
	}
	for at := 4096; at+32 <= len(b); at += 32 {
		if !bytes.Equal(b[at:at+32], make([]byte, 32)) {
			n++
		}
	}
	return n
}

// one begins a move, or goes on with it, and kills one side.
func (k *killing) one(ctx context.Context, who string) error {
	if err := k.begin(ctx); err != nil {
		return err
	}
	time.Sleep(time.Duration(k.random.Int64N(int64(k.within))))
	victim := k.from
	if who == "receiver" {
		victim = k.to
	}
	victim.end()
	at := k.noted()
	k.amid[k.state(at)]++
	if k.within = k.within * 21 / 20; exists(k.place(k.name())) {
		k.within = k.within * 4 / 5
	}
	if err := victim.start(); err != nil {
		return err
	}
	if who == "receiver" {
		k.now, k.told = nil, 0
	} else if err := k.idle(ctx); err != nil {
		return err
	}
	if k.noted() < at && exists(k.place(k.name())+partial) {
		k.lost++
	}
	k.countRepeated()
	return k.taken(ctx)
}

// state is what a kill came into.
func (k *killing) state(noted int64) string {
	switch {
	case exists(k.place(k.name())):
		return "the volume has its name at the receiver"
	case noted == killedSize/mib:
		return "all is stored, and is made stable"
	case noted > k.before:
		return "blocks are sent"
	}
	return "the two greet each other"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// idle returns when the receiver waits for another sender, or has all.
func (k *killing) idle(ctx context.Context) error {
	for ; ; time.Sleep(time.Millisecond) {
		j, err := k.to.api.Job(ctx, k.now.job)
		if err != nil {
			return err
		}
		if j.Ended != nil {
			var out control.ReceivedVolume
			err := j.Into(&out)
			k.repeated += out.Repeated
			if err == nil && out.Stored+out.Kept != killedSize/mib {
				k.wrong = append(k.wrong, fmt.Sprintf("stored %d, kept %d", out.Stored, out.Kept))
			}
			return err
		}
		if j.Progress != nil && strings.Contains(j.Progress.What, "the last connection ended") {
			return nil
		}
	}
}

// repeatedLine is how the receiver tells of a connection that has ended.
var repeatedLine = regexp.MustCompile(`is not whole.* repeated=(\d+)`)

// countRepeated counts in what the receiver has said since it was looked at.
func (k *killing) countRepeated() {
	said := k.to.Output.String()
	for _, m := range repeatedLine.FindAllStringSubmatch(said[k.told:], -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits
		k.repeated += n
	}
	k.told = len(said)
}

// taken compares a volume that is served by now, and makes place for the next.
func (k *killing) taken(ctx context.Context) error {
	if _, err := k.to.api.Volume(ctx, k.name()); err != nil {
		return nil
	}
	if err := equal(k.source("dense"), k.place(k.name())); err != nil {
		k.wrong = append(k.wrong, err.Error())
	}
	if _, err := k.to.api.Delete(ctx, control.VolumeAt(k.name()), control.Permissions{Yes: true}, control.Condition{}); err != nil {
		return err
	}
	if err := gone(k.place(k.name()), k.place(k.name())+journal); err != nil {
		return err
	}
	k.moves++
	k.now = nil
	return nil
}
