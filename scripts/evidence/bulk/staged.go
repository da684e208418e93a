package main

import (
	"context"
	"crypto/aes"
	aead "crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"lunar/internal/pipeline"
	"lunar/scripts/evidence/notes"
)

// leastStaged is how many times as fast as one thread stages have to be (ACES, aces-disks): of
// two CPUs, 2 is the most.
const leastStaged = 1.7

// stagedRounds is how many rounds are one of the other checks: they are short.
const stagedRounds = 5

// steps are what is done with each block: what a move does, in one process, with a file in
// place of the network.
type steps struct {
	from, to *os.File
	seal     aead.AEAD
	size     int64
}

func (s *steps) load(b *pipeline.Block) error {
	_, err := s.from.ReadAt(b.Memory[:mib], b.Offset)
	return err
}

func (s *steps) digest(b *pipeline.Block) error {
	b.Digest = sha256.Sum256(b.Memory[:mib])
	return nil
}

func (s *steps) encipher(b *pipeline.Block) error {
	var nonce [12]byte
	binary.BigEndian.PutUint64(nonce[4:], uint64(b.Offset))
	s.seal.Seal(b.Memory[:0], nonce[:], b.Memory[:mib], b.Digest[:])
	return nil
}

func (s *steps) store(b *pipeline.Block) error {
	_, err := s.to.WriteAt(b.Memory[:mib], b.Offset)
	return err
}

// alone does all of it by one thread.
func (s *steps) alone() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool, err := pipeline.NewPool(1, stagedBlock)
	if err != nil {
		return err
	}
	b := pool.Blocks[0]
	for b.Offset = 0; b.Offset < s.size; b.Offset += mib {
		for _, step := range []func(*pipeline.Block) error{s.load, s.digest, s.encipher, s.store} {
			if err := step(b); err != nil {
				return errors.Join(err, pool.Close())
			}
		}
	}
	return pool.Close()
}

// stagedBlock is a block with room for a tag, in whole pages, and staged blocks there are few:
// what waits between stages is in the caches.
const (
	stagedBlock  = mib + 4096
	stagedBlocks = 8
)

// inStages does all of it by stages.
func (s *steps) inStages() error {
	pool, err := pipeline.NewPool(stagedBlocks, stagedBlock)
	if err != nil {
		return err
	}
	free := pipeline.NewSpare(pool)
	stage := func(name string, kind pipeline.Kind, step func(*pipeline.Block) error) pipeline.Stage {
		return pipeline.Stage{
			StageConfig: pipeline.StageConfig{Name: name, Kind: kind, Bound: 2, Threads: 1},
			Work:        func(b *pipeline.Block) (bool, error) { return true, step(b) },
		}
	}
	run := pipeline.Start(pipeline.Config{Cores: runtime.NumCPU(), Out: free.Put, Stages: []pipeline.Stage{
		stage("load", pipeline.Events, s.load), stage("digest", pipeline.Parallel, s.digest),
		stage("cipher", pipeline.Parallel, s.encipher), stage("store", pipeline.Events, s.store),
	}})
	for at := int64(0); at < s.size && err == nil; at += mib {
		<-free.Ready
		b := free.Take()
		b.Offset = at
		err = run.Put(b)
	}
	return errors.Join(err, run.Wait(), pool.Close())
}

// staged compares stages with one thread that does the same work.
func staged(_ context.Context, o options) (r result, err error) {
	dir, err := os.MkdirTemp(o.Memory, "lunar-bulk-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &steps{size: o.MiB * mib}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return r, err
	}
	if s.seal, err = aead.NewGCM(block); err != nil {
		return r, err
	}
	source := filepath.Join(dir, "source")
	if err := makeImage(source, s.size, false); err != nil {
		return r, err
	}
	if s.from, err = os.Open(source); err != nil {
		return r, err
	}
	defer s.from.Close()
	ways := []struct {
		name string
		do   func() error
	}{{"alone", s.alone}, {"staged", s.inStages}}
	took := make([][]time.Duration, len(ways))
	rounds := stagedRounds * o.Rounds
	for range rounds + 1 { // the first one makes the files
		for i, w := range ways {
			if s.to, err = os.OpenFile(filepath.Join(dir, w.name), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
				return r, err
			}
			began := time.Now()
			err := w.do()
			took[i] = append(took[i], time.Since(began))
			if err = errors.Join(err, s.to.Close()); err != nil {
				return r, err
			}
		}
	}
	if err := equal(filepath.Join(dir, "alone"), filepath.Join(dir, "staged")); err != nil {
		return r, err
	}
	row, fastest := []string{}, []float64{}
	for i := range took {
		all := took[i][1:]
		slices.Sort(all)
		least := all[0].Seconds()
		fastest = append(fastest, least)
		row = append(row, fmt.Sprintf("%.3f s (median %.3f), %.0f MiB/s", least, all[len(all)/2].Seconds(), float64(o.MiB)/least))
	}
	times := fastest[0] / fastest[1]
	r.How = fmt.Sprintf("A file of %d MiB in memory is read, digested (SHA-256), enciphered (AES-256-GCM) and written to another file in memory, in blocks of 1 MiB: by one thread that does all four, and by the stages that moves consist of (`internal/pipeline`), with their monitor. The fastest of %d rounds in which both take turns, because whatever else the machine does only adds to a time; both files are equal.", o.MiB, rounds)
	r.Columns = []string{"one thread", "four stages", "times as fast"}
	r.Rows = [][]string{append(row, fmt.Sprintf("%.2f", times))}
	r.Facts = []notes.Fact{notes.Found(fmt.Sprintf("stages on %d CPUs: times as fast as one thread, at least %.1f", runtime.NumCPU(), leastStaged), fmt.Sprintf("%.2f", times), times >= leastStaged)}
	return r, nil
}
