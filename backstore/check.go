package backstore

import "fmt"

// kindNames serves logs and errors.
var kindNames = [...]string{
	Read: "read", Write: "write", Flush: "flush",
	Discard: "discard", WriteZeroes: "write zeroes", Map: "map", Wipe: "wipe", Erase: "erase",
}

// String names the kind for logs and errors.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Changes reports whether an Op of this kind alters the bytes of the store.
func (k Kind) Changes() bool { return k == Write || k == Discard || k == WriteZeroes || k == Erase }

// Length returns how many bytes the op covers: those of Data for Read and
// Write, else Len.
func (op *Op) Length() int64 {
	if op.Kind == Read || op.Kind == Write {
		return int64(len(op.Data))
	}
	return op.Len
}

// Check says why a store with info must refuse op, or nil. It is the same for
// all stores: the range (ErrOutOfRange), write access (ErrReadOnly), support
// (ErrUnsupported) and the store's own BlockSize. A Flush may always
// cover the whole store, as a Wipe does, so their ranges do not matter.
func Check(op *Op, info *Info) error {
	n := op.Length()
	switch {
	case op.Kind > Erase, op.Kind == Erase && !info.CryptoErase:
		return fmt.Errorf("%v: %w", op.Kind, ErrUnsupported)
	case op.Kind == Flush, op.Kind == Wipe:
		return nil
	case op.Off < 0 || n < 0 || op.Off > info.Size-n:
		return fmt.Errorf("%v of %d bytes at %d, the size is %d: %w", op.Kind, n, op.Off, info.Size, ErrOutOfRange)
	case info.ReadOnly && op.Kind.Changes():
		return fmt.Errorf("%v: %w", op.Kind, ErrReadOnly)
	case op.Kind == Discard && !info.Discard:
		return fmt.Errorf("%v: %w", op.Kind, ErrUnsupported)
	case op.Atomic && (n > int64(info.MaxAtomic) || (op.Off|n)%int64(max(1, info.AtomicUnit)) != 0):
		return fmt.Errorf("atomic %v of %d bytes at %d: expected multiples of %d bytes, at most %d", op.Kind, n, op.Off, info.AtomicUnit, info.MaxAtomic)
	case info.BlockSize > 1 && (op.Off|n)%int64(info.BlockSize) != 0:
		return fmt.Errorf("%v of %d bytes at %d: expected multiples of %d bytes", op.Kind, n, op.Off, info.BlockSize)
	}
	return nil
}
