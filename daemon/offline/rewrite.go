package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/bulk"
	"lunar/internal/durable"
	"lunar/internal/evloop"
)

// What files are called that are beside a volume's while it is rewritten, and after it.
const (
	rewritingSuffix = ".rewriting"
	journalSuffix   = ".rewriting.journal"
	beforeSuffix    = ".before"
)

// Rewritten is what has come of rewriting a volume's file.
type Rewritten struct {
	bulk.Copied
	Path   string // of the volume
	Before string // of what it was
	Header string // made for it, or that it had
	Key    string // file of the key
}

// Encipher encrypts the data of a volume that has encryption in the configuration, and no
// header yet. The new file takes the place of the old one when it has been read again and is
// equal. What is broken off goes on at the next call.
func (k Unencrypted) Encipher(ctx context.Context, p *bulk.Progress) (Rewritten, error) {
	return k.rewrite(ctx, p, func(r *rewriting) error {
		e := r.v.Encryption
		if e == nil {
			return errors.New("found no encryption in the configuration: say there what it is to have")
		}
		r.made, r.Header, r.Key = true, e.HeaderFile, e.KeyFile
		return nil
	})
}

// Decipher is the way back, for a volume that has no encryption in the configuration any more,
// and still a header file.
func (k Unencrypted) Decipher(ctx context.Context, keyFile, headerFile string, p *bulk.Progress) (Rewritten, error) {
	return k.rewrite(ctx, p, func(r *rewriting) error {
		if r.v.Encryption != nil {
			return errors.New("found encryption in the configuration: take it out, for the volume is to have none")
		}
		if r.Header, r.Key = headerFile, keyFile; headerFile == "" {
			r.Header = r.v.Path + conf.HeaderSuffix
		}
		return nil
	})
}

// rewriting is a volume whose file is written anew.
type rewriting struct {
	Rewritten
	v       *conf.Volume
	dir     string // state directory
	path    string // of the file, without links
	made    bool   // the header is made for the new file; else it is the old one's
	key     *crypt.Key
	loop    *evloop.Loop
	journal *bulk.Journal
}

// rewrite does it, while no server runs in the state directory.
func (k Unencrypted) rewrite(ctx context.Context, p *bulk.Progress, how func(*rewriting) error) (out Rewritten, err error) {
	r := &rewriting{}
	if r.dir, err = conf.StateDir(k.StateDir); err != nil {
		return out, err
	}
	cfg, err := load(k.File, r.dir)
	if err != nil {
		return out, conf.Reported(err)
	}
	if err := state.Make(r.dir); err != nil {
		return out, err
	}
	held, err := state.Take(r.dir)
	if err != nil {
		return out, fmt.Errorf("tgtd must not run meanwhile: %w", err)
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	if r.v = cfg.Volume(k.Volume); r.v == nil {
		return out, fmt.Errorf("found no volume %q in %s", k.Volume, k.File)
	}
	if k.StateDir == "" {
		err = r.had()
	}
	if err := errors.Join(err, r.fits(), how(r)); err != nil {
		return out, fmt.Errorf("volume %s: %w", r.v.Name, err)
	}
	if err := r.all(ctx, p); err != nil {
		return out, fmt.Errorf("volume %s: %w", r.v.Name, err)
	}
	return r.Rewritten, nil
}

// had refuses a state directory that is the default, and whose server did not have the volume: what that
// of another server has of it, such as data in its cache's notes or in a log of atomic writes, would be left out.
func (r *rewriting) had() error {
	record, err := state.RecordOf(r.dir, r.v.Name).Peek()
	if err == nil && (record == nil || record.Path != r.v.Path) {
		err = fmt.Errorf("found nothing of it in the state directory by default, %s: name that of the server that had it last (--state-dir), which may have data of it that are not written; if none had it, name this one", r.dir)
	}
	return err
}

// fits refuses what cannot be written anew.
func (r *rewriting) fits() error {
	v := r.v
	switch {
	case v.Type != conf.FileVolume || v.Excess != "":
		return fmt.Errorf("found type %s, expected file, without excess: of others, send the volume to a server where it has encryption (lunar volume send)", v.Type)
	case v.ReadOnly:
		return errors.New("found it read-only")
	case v.Protection != 0:
		return errors.New("found protection, whose file belongs to the present one")
	}
	left, err := filepath.Glob(filepath.Join(r.dir, "excess", v.Name+"-*.json")) // names have no pattern's letters
	if err == nil && left != nil {
		err = fmt.Errorf("%s says that its device for writes in excess has data of it: put the key excess back, start the server once, and stop it in order", left[0])
	}
	if err != nil {
		return err
	}
	note, err := state.ReadSegmentNote(r.dir)
	if err == nil && note.Path != "" {
		err = errors.New("the last server did not end in order, and its cache may have data that are not written: start it once, and stop it")
	}
	return err
}

// all goes on where it was broken off.
func (r *rewriting) all(ctx context.Context, p *bulk.Progress) (err error) {
	if err := r.prepare(); err != nil {
		return err
	}
	if bulk.FindWhole(r.path+journalSuffix, r.path) == nil { // else the file has its place already
		if err := r.ready(); err != nil {
			return err
		}
		if err := r.copy(ctx, p); err != nil {
			return err
		}
	}
	return r.place()
}

// prepare finds the file and the key.
func (r *rewriting) prepare() (err error) {
	if r.path, err = filepath.EvalSymlinks(r.v.Path); err == nil {
		r.key, err = crypt.ReadKey(r.Key)
	}
	r.Path, r.Before = r.v.Path, r.path+beforeSuffix
	return err
}

// header is where the header file is until the new file has its place.
func (r *rewriting) header() string {
	if r.made {
		return r.Header + rewritingSuffix
	}
	return r.Header
}

// ready refuses to begin, or to go on, where something is not as it has to be.
func (r *rewriting) ready() error {
	there := !durable.Absent(r.Header)
	if is, err := os.Lstat(r.Before); err == nil {
		if now, err := os.Stat(r.path); err == nil && os.SameFile(is, now) { // it was broken off after the link
			if err := os.Remove(r.Before); err != nil {
				return err
			}
		}
	}
	switch {
	case r.made && there:
		return fmt.Errorf("found a header file %s: it is encrypted already", r.Header)
	case !r.made && !there:
		return fmt.Errorf("found no header file %s: it is not encrypted, or the file is elsewhere", r.Header)
	case !durable.Absent(r.Before):
		return fmt.Errorf("found %s, which is what an earlier rewriting has left: remove it", r.Before)
	}
	partial := r.path + rewritingSuffix
	if r.made && durable.Absent(partial) && !durable.Absent(r.header()) {
		return fmt.Errorf("found %s without %s: it may be the header of what is at %s now", r.header(), partial, r.path)
	}
	if !durable.Absent(partial) && durable.Absent(r.path+journalSuffix) {
		return fmt.Errorf("found %s without its journal: remove it to begin anew", partial)
	}
	if durable.Absent(partial) {
		if err := os.Remove(r.path + journalSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copy writes the new file and its header, reads both again, and notes that all is equal.
func (r *rewriting) copy(ctx context.Context, p *bulk.Progress) (err error) {
	stop, err := r.thread()
	if err != nil {
		return err
	}
	defer stop()
	from, to, err := r.open()
	defer func() {
		err = errors.Join(err, closed(from), closed(to))
		if r.journal != nil {
			err = errors.Join(err, r.journal.Close())
		}
	}()
	if err != nil {
		return err
	}
	origin, err := bulk.OpenVolume(r.loop, from)
	if err != nil {
		return err
	}
	defer origin.Close()
	copied, err := bulk.OpenVolume(r.loop, to)
	if err != nil {
		return err
	}
	defer copied.Close()
	if r.Copied, err = bulk.Copy(ctx, origin, copied, r.journal, max(runtime.NumCPU()/2, 1), p); err != nil {
		return err
	}
	return r.journal.Finish(&bulk.Received{Offer: bulk.Offer{Name: r.v.Name, Size: from.Info().Size}, Checksum: r.Checksum}, r.path+rewritingSuffix)
}

func closed(s backstore.Store) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// thread begins an event thread, which is not a server's.
func (r *rewriting) thread() (stop func(), err error) {
	work := evloop.NewWorkers(runtime.NumCPU())
	if r.loop, err = evloop.New(evloop.Config{Name: "rewriting", CPU: -1, Node: -1, Buffers: 8 << 20, RingEntries: 128, Workers: work}); err != nil {
		work.Close()
		return nil, err
	}
	go r.loop.Run()
	return func() {
		work.Close()
		r.loop.Stop()
	}, nil
}

// open opens the file as it is, which locks it, then the journal, and the new file: without a
// journal nobody would know what is in that.
func (r *rewriting) open() (from, to backstore.Store, err error) {
	log := slog.New(slog.DiscardHandler)
	clear := *r.v
	clear.Encryption = nil
	intents := state.IntentLogs(r.dir) // of a server that was killed
	if err := durable.MakeDir(intents.Dir); err != nil {
		return nil, nil, err
	}
	if from, err = medium.Open(&clear, intents, log, nil); err != nil {
		return nil, nil, err
	}
	was, err := os.Stat(r.path)
	if err != nil {
		return from, nil, err
	}
	if r.journal, err = bulk.OpenJournal(r.path+journalSuffix, from.Info().Size); err != nil {
		return from, nil, err
	}
	partial := clear
	partial.Path, partial.Size, partial.Direct, partial.MayBuffer = r.path+rewritingSuffix, conf.Size(from.Info().Size), from.Info().Size%4096 == 0, true
	if to, err = medium.Open(&partial, backstore.Intents{}, log, nil); err != nil {
		return from, nil, err
	}
	if err := os.Chmod(partial.Path, was.Mode().Perm()); err != nil {
		return from, to, err
	}
	if st, ok := was.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(partial.Path, int(st.Uid), int(st.Gid)); err != nil && os.Getuid() == 0 {
			return from, to, err
		}
	}
	if r.made && durable.Absent(r.header()) {
		if err := crypt.Create(r.header(), r.key, r.v.BlockSize); err != nil {
			return from, to, err
		}
	}
	sealed := &to
	if !r.made {
		sealed = &from
	}
	store, err := crypt.Open(crypt.Config{Data: *sealed, Path: r.header(), Key: r.key, Block: r.v.BlockSize, Logger: log})
	if err == nil {
		*sealed = store
	}
	return from, to, err
}

// place gives the new file its name. At each moment a start finds the old volume, the new one,
// or refuses: cipher text without a header, or a header without encryption.
func (r *rewriting) place() error {
	dir := filepath.Dir(r.path)
	if !durable.Absent(r.path + rewritingSuffix) {
		if err := os.Link(r.path, r.Before); err != nil {
			return err
		}
		if err := errors.Join(os.Rename(r.path+rewritingSuffix, r.path), durable.SyncDir(dir)); err != nil {
			return err
		}
	}
	from, to := r.Header, r.Header+beforeSuffix
	if r.made {
		from, to = r.header(), r.Header
	}
	if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(r.Header)); err != nil {
		return err
	}
	if !r.made {
		r.Header = to
	}
	if err := state.ForgetHeader(r.dir, r.v); err != nil {
		return err
	}
	if record, err := state.RecordOf(r.dir, r.v.Name).Load(); err != nil || record != nil {
		if _, again := state.Intend(r.dir, r.v, evidence.Adopt); errors.Join(err, again) != nil {
			return errors.Join(err, again)
		}
	}
	return errors.Join(os.Remove(r.path+journalSuffix), durable.SyncDir(dir))
}
