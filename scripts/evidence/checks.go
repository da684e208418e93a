package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	"lunar/scripts/evidence/powerfs"
)

// check is a promise and how it is tested.
type check struct {
	name, promise, how string
	count              func(*runCommand) int
	run                func(r *runCommand, dir string, count int) (result, error)
}

var checks = []check{
	{
		name:    "points",
		promise: "With `write: back`, a logical block that was acknowledged is there after a kill at any instruction, and one under way is old or new, never both",
		how: "A process under ptrace(2) is killed inside functions of the cache, its segment, protection information and intent logs, while it starts or under load, " +
			"after so many single steps: in a copy, between any two bytes. The next process takes the segment over; every block is compared",
		count: func(r *runCommand) int { return r.Points },
		run:   (*runCommand).points,
	},
	{
		name:    "kills",
		promise: "What was acknowledged survives `kill -9`, whatever `write` says",
		how:     "Kills at random moments under load; 29 volumes: three write policies, two admissions, with and without protection information and encryption; mirrors and writes in excess, as they are and below cache and encryption",
		count:   func(r *runCommand) int { return r.Kills },
		run:     (*runCommand).kills,
	},
	{
		name:    "members",
		promise: "A mirror serves what was acknowledged, or refuses to start, whatever becomes of its members; so does a volume with writes in excess",
		how: "Kills at random moments, under load and while members are copied. Before a start a member may be missing, come back or be replaced, the excess device be missing, or its note. " +
			"With all that it had, and with one member after a stop in order, the server must start; in the end the members must be equal",
		count: func(r *runCommand) int { return r.Members },
		run:   (*runCommand).members,
	},
	{
		name: "cuts",
		promise: "After a loss of power, what was flushed, written with FUA or atomically, or acknowledged with `write: sync`, is there; atomic writes are there wholly or not at all; " +
			"reservations kept with APTPL still fence; the server starts",
		how: "Volumes and state directory on a file system in memory that at any of its operations stops, and keeps nothing that was not synced (data by fsync of the file, names by fsync of the directory), " +
			"or any sectors and names of it. The cache's segment is gone",
		count: func(r *runCommand) int { return r.Cuts },
		run:   func(r *runCommand, dir string, count int) (result, error) { return r.cuts(dir, count, "", onMemory) },
	},
	{
		name:    "ext4",
		promise: "The same on a file system that repairs itself after a loss of power",
		how:     "ext4 as `mkfs.ext4` makes it, on a device that loses what it was not told to flush, or any sectors of it; `e2fsck -fy` at each boot",
		count:   func(r *runCommand) int { return r.Ext4 },
		run: func(r *runCommand, dir string, count int) (result, error) {
			return r.cuts(dir, count, "", journalled)
		},
	},
	{
		name:    "ext4-without-journal",
		promise: "The same where no journal makes up for what was not synced",
		how:     "ext4 without its journal and extents, no UNMAP; an inode a block, so that nothing is stable that was not synced itself",
		count:   func(r *runCommand) int { return r.Ext4 },
		run: func(r *runCommand, dir string, count int) (result, error) {
			return r.cuts(dir, count, "unmap", unjournalled)
		},
	},
	{
		name:    "flips",
		promise: "A bit that flips in a file that tgtd keeps is refused with the file's name, or changes nothing that initiators see. Block data in the segment are covered by `cache.checksum`",
		how: "One bit in place, in turn in all files of the state directory, headers of encryption, protection information, protected volumes and all parts of the segment, " +
			"after `kill -9` or an orderly stop; then data, identities, registrations and the fence are compared. With the bit back, a server that refused must serve everything",
		count: func(r *runCommand) int { return r.Flips },
		run:   (*runCommand).flips,
	},
	{
		name:    "secrets",
		promise: "No output has a secret, however malformed the configuration",
		how:     "One or two mistakes among the lines with secrets; all go to `check`, every tenth to `serve` and to `apply` at a running server; five characters of a secret in a row are a leak",
		count:   func(r *runCommand) int { return r.Configurations },
		run:     (*runCommand).secrets,
	},
}

// context ends with an interrupt: kill points, which take longest, are noted as far as they
// are then.
func (r *runCommand) context() context.Context {
	if r.ctx == nil {
		return context.Background()
	}
	return r.ctx
}

func (r *runCommand) random() *rand.Rand { return rand.New(rand.NewPCG(r.Seed, 0)) }

func (r *runCommand) points(dir string, count int) (result, error) {
	c, err := newCampaign(r.Tgtd, count, r.Seed, func() bool { return r.context().Err() != nil })
	if err != nil {
		return result{}, err
	}
	err = c.run(dir, r.Servers)
	return result{
		Figures: fmt.Sprintf("%d distinct points at %d instructions of %d functions; %d kills", len(c.seen), len(c.killed), len(c.coverage()), c.rounds),
		Wrong:   c.broken, Words: "kills after which blocks were torn, lost or refused", Found: some(c.wrong), Detail: c.table(),
	}, err
}

func (r *runCommand) kills(dir string, count int) (sum result, err error) {
	random, done, commands, wrong := r.random(), 0, 0, []string(nil)
	for n := 0; done < count && err == nil; n++ {
		k := &kills{binary: r.Tgtd, random: random}
		err = k.run(filepath.Join(dir, fmt.Sprint(n)), count-done)
		done, commands, wrong = done+k.done, commands+k.commands, append(wrong, k.wrong...)
		sum.Wrong += min(len(k.wrong), 1)
	}
	sum.Figures, sum.Words, sum.Found = fmt.Sprintf("%d kills, %d commands", done, commands), "kills after which something was wrong", some(wrong)
	return sum, err
}

func (r *runCommand) members(dir string, count int) (sum result, err error) {
	m := &members{binary: r.Tgtd, random: r.random()}
	err = m.run(dir, count)
	return result{
		Figures: fmt.Sprintf("%d rounds, %d commands, %d starts refused, %d with a member replaced", m.done, m.commands, m.refused, m.copied),
		Wrong:   len(m.wrong), Words: "rounds after which something was wrong", Found: some(m.wrong),
	}, err
}

// onMemory is the disk itself.
func onMemory(string) (medium, *powerfs.Disk, error) { return &onFUSE{}, powerfs.NewDisk(), nil }

func (r *runCommand) cuts(dir string, count int, without string, prepare func(below string) (medium, *powerfs.Disk, error)) (sum result, err error) {
	random, done, starting, commands, wrong := r.random(), 0, 0, 0, []string(nil)
	for n := 0; done < count && err == nil; n++ {
		c := &cuts{binary: r.Tgtd, random: random, without: without}
		at := filepath.Join(dir, fmt.Sprint(n))
		if c.medium, c.disk, err = prepare(filepath.Join(at, "below")); err == nil {
			err = c.run(at, count-done)
		}
		done, starting, commands, wrong = done+c.done, starting+c.starting, commands+c.commands, append(wrong, c.wrong...)
		sum.Wrong += len(c.wrong)
	}
	sum.Figures = fmt.Sprintf("%d cuts, %d of them while the server started; %d commands", done, starting, commands)
	sum.Words, sum.Found = "cuts after which something was wrong", some(wrong)
	return sum, err
}

func (r *runCommand) flips(dir string, count int) (result, error) {
	f := newFlips(r.Tgtd, r.random())
	err := f.run(dir, count)
	return result{Figures: fmt.Sprintf("%d bits in %d kinds of files and parts", f.done, len(f.counts)), Wrong: f.broken(), Words: "bits that were not noticed, or refused without the file's name", Found: some(f.wrong), Detail: f.table()}, err
}

func (r *runCommand) secrets(dir string, count int) (result, error) {
	k := &leaks{binary: r.Tgtd, random: r.random()}
	err := k.run(dir, count)
	return result{Figures: fmt.Sprintf("%d configurations, %d of them given to serve and apply", k.refused, k.served), Wrong: k.leaky, Words: "configurations of which a secret was printed", Found: some(k.wrong)}, err
}
