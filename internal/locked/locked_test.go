package locked

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// flagsAt are the flags of the mapping that has an address (proc(5), VmFlags).
func flagsAt(t *testing.T, p unsafe.Pointer) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("no smaps: %v", err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		var from, to uintptr
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = uintptr(p) >= from && uintptr(p) < to
		}
		if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			return flags
		}
	}
	t.Fatal("not mapped")
	return ""
}

// TestMovedKeyIsNowhereElse: an expanded AES key does its work from pages that are locked and not
// dumped, and is nowhere else any more.
func TestMovedKeyIsNowhereElse(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	want, block := make([]byte, 16), make([]byte, 16)
	original, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	original.Encrypt(want, block)
	at, ok := contents(original)
	if !ok {
		t.Skip("this architecture's AES keeps pointers beside its keys")
	}
	moved, memory := Move(original)
	moved.Encrypt(block, block)
	if !bytes.Equal(block, want) {
		t.Error("it enciphers otherwise")
	}
	if !bytes.Equal(at, make([]byte, len(at))) {
		t.Error("the key is still where it was")
	}
	flags := flagsAt(t, unsafe.Pointer(unsafe.SliceData(memory.Bytes())))
	if !strings.Contains(flags, " dd") {
		t.Errorf("found flags %s, expected dd (not dumped)", flags)
	}
	if !strings.Contains(flags, " lo") && Failure() == nil {
		t.Errorf("found flags %s, expected lo (locked) or a failure", flags)
	}
	runtime.KeepAlive(memory)
}

// TestWipe: what the standard library keeps of a key can be overwritten.
func TestWipe(t *testing.T) {
	block, err := aes.NewCipher(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	hash.Write([]byte("a key"))
	for _, v := range []any{block, sealer, hash} {
		at, ok := contents(v)
		if !ok {
			t.Errorf("%T has pointers", v)
			continue
		}
		if Wipe(v); !bytes.Equal(at, make([]byte, len(at))) {
			t.Errorf("%T: something is left", v)
		}
	}
	type pointing struct{ to *int }
	for _, v := range []any{nil, 1, &pointing{new(int)}, (*[4]byte)(nil), "text"} {
		if _, ok := contents(v); ok {
			t.Errorf("%T would be overwritten", v)
		}
	}
}

// TestGivenBack: pages do not pile up.
func TestGivenBack(t *testing.T) {
	for range 100 {
		for range 100 {
			New(64).Bytes()[0] = 1
		}
		runtime.GC()
	}
	if m := New(64); m.Bytes()[0] != 0 {
		t.Error("found a key of before")
	}
}
