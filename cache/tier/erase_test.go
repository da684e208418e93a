package tier

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/crypt"
	"lunar/backstore/errstore"
	"lunar/cache"
	"lunar/cache/internal/blocks"
	"lunar/internal/eventually"
)

// encrypted is a store of cipher text in a medium.
func encrypted(t *testing.T, medium backstore.Store) backstore.Store {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, bytes.Repeat([]byte{0x81}, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := crypt.ReadKey(path)
	if err == nil {
		err = crypt.Create(filepath.Join(dir, "header"), key, sector)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := crypt.Open(crypt.Config{Data: medium, Path: filepath.Join(dir, "header"), Key: key, Block: sector})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newEncrypted is a volume that writes nothing by itself.
func newEncrypted(t *testing.T, policy Policy) *faulty {
	s := large.with(policy, "lru")
	s.volume.Age = time.Hour
	f := &faulty{medium: newMem(t, false)}
	f.faults = errstore.Wrap(encrypted(t, f.medium))
	f.volume, f.cache = s.wrap(t, f.faults)
	t.Cleanup(func() {
		if err := f.volume.Close(); err != nil {
			t.Error(err)
		}
	})
	f.Client = backstoretest.NewClient(t, f.volume, backstoretest.NewLoop(t, false))
	return f
}

var eraseAll = backstore.Op{Kind: backstore.Erase, Len: backstoretest.Size}

// What is clean and what is dirty is gone with the key: neither is read again, nor
// written under the new one.
func TestErase(t *testing.T) {
	for _, policy := range []Policy{Through, Back} {
		f := newEncrypted(t, policy)
		data := backstoretest.Pattern(backstoretest.Size, 1)
		f.Write(t, 0, data[:4*large64])
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		f.Write(t, 2*large64, data[2*large64:])
		if (f.dirty() > 0) != (policy == Back) {
			t.Fatalf("%d dirty bytes", f.dirty())
		}
		f.Must(t, eraseAll)
		if f.dirty() != 0 {
			t.Errorf("%d bytes are dirty still", f.dirty())
		}
		before := f.medium.Bytes()
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		if !bytes.Equal(f.medium.Bytes(), before) {
			t.Error("something was written after the key had gone")
		}
		now := f.Read(t, 0, backstoretest.Size)
		for at := 0; at < len(now); at += 16 {
			if bytes.Equal(now[at:at+16], data[at:at+16]) {
				t.Fatalf("policy %v: byte %d is there still", policy, at)
			}
		}
		f.Write(t, 0, data[:page])
		f.Must(t, backstore.Op{Kind: backstore.Flush})
		if !bytes.Equal(f.Read(t, 0, page), data[:page]) {
			t.Error("what was written later is not there")
		}
	}
}

// What is filled while the key goes is not served afterwards.
func TestEraseDuringFill(t *testing.T) {
	f := newEncrypted(t, Through)
	data := backstoretest.Pattern(2*large64, 1)
	f.faults.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Erase}, Hold: true})
	f.Write(t, 0, data)
	erase := eraseAll
	erased := f.Go(&erase)
	eventually.Holds(t, "the erasure is held", func() bool { return f.faults.Held() > 0 })
	if !bytes.Equal(f.Read(t, 0, large64), data[:large64]) { // fills the cache, which was emptied already
		t.Error("other data before the key has gone")
	}
	f.faults.Release(-1)
	<-erased
	if erase.Err != nil {
		t.Fatal(erase.Err)
	}
	if got := f.Read(t, 0, large64); bytes.Equal(got[:16], data[:16]) {
		t.Error("the cache serves what has no key any more")
	}
}

// What somebody sends from does not change under it when the key goes.
func TestEraseUnderLoan(t *testing.T) {
	f := newEncrypted(t, Back)
	data := backstoretest.Pattern(large64, 1)
	f.Write(t, 0, data)
	v := f.volume.(*volume)
	key := cache.Key{LU: v.config.LU, Block: 0}
	part := v.cache.blocks.Part(key)
	slot, ok := part.TryRead(key, 0xf)
	if !ok {
		t.Fatal("what was written is not in the cache")
	}
	erase := eraseAll
	erased := f.Go(&erase)
	select {
	case <-erased:
	case <-time.After(10 * time.Millisecond): // it may wait for the loan
	}
	if !bytes.Equal(part.Bytes(slot)[:4*page], data[:4*page]) {
		t.Error("what is being sent has changed")
	}
	backstoretest.On(f.Loop, func() { blocks.Wake(part.Unpin(slot)) })
	<-erased
	if got := f.Read(t, 0, page); erase.Err != nil || bytes.Equal(got[:16], data[:16]) {
		t.Errorf("data of before came back: %v", erase.Err)
	}
}
