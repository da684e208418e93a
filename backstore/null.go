package backstore

import "lunar/internal/evloop"

// nullStore is nothing but a size.
type nullStore struct{ info Info }

// NewNull returns a Store of size bytes that forgets what is written and reads
// as zeroes, for measuring everything else. Reading costs clearing the buffer,
// which holds other commands' data before; writing costs nothing. blockBytes
// is the block size of the logical unit in bytes; 0 is 512.
func NewNull(size int64, blockBytes int) (Store, error) {
	if err := checkVolatile(size, blockBytes); err != nil {
		return nil, err
	}
	return &nullStore{Info{
		Size: size, BlockSize: 1, PhysicalBlock: pageSize,
		Discard: true, DiscardGran: sector, DiscardZeroes: true, Thin: true, Describe: "null",
	}}, nil
}

// Info implements Store.
func (s *nullStore) Info() Info { return s.info }

// Lane implements Store.
func (s *nullStore) Lane(*evloop.Loop) (Lane, error) { return inlineLane{s.do}, nil }

// Close implements Store.
func (s *nullStore) Close() error { return nil }

func (s *nullStore) do(op *Op) error {
	if err := Check(op, &s.info); err != nil {
		return err
	}
	switch op.Kind {
	case Read:
		clear(op.Data)
	case Map:
		op.Mapped = false
	}
	return nil
}
