package main

import (
	"encoding/binary"
	"fmt"
)

const (
	blockSize = 512
	words     = blockSize / 8
)

// A block that the load writes says in each of its 64-bit words which generation
// of which block of which volume it is, and which word:
//
//	bits 0-7    word
//	bits 8-27   logical block address
//	bits 28-35  volume
//	bits 36-63  generation, from 1
//
// So a block that is half old and half new cannot pass for either.

// fill makes b the blocks from lba on, in that generation.
func fill(b []byte, volume, lba int, generation uint32) {
	for at := 0; at < len(b); at += 8 {
		word := at % blockSize / 8
		binary.LittleEndian.PutUint64(b[at:], uint64(generation)<<36|uint64(volume)<<28|uint64(lba+at/blockSize)<<8|uint64(word))
	}
}

// generation tells which one b, one block, is; 0: zeroes. Everything else is an error
// that says what was found.
func generation(b []byte, volume, lba int) (uint32, error) {
	first, err := wordGeneration(b, volume, lba, 0)
	if err != nil {
		return 0, err
	}
	for word := 1; word < words; word++ {
		other, err := wordGeneration(b, volume, lba, word)
		if err != nil {
			return 0, err
		}
		if other != first {
			return 0, fmt.Errorf("torn: generation %d before byte %d, generation %d from there", first, word*8, other)
		}
	}
	return first, nil
}

func wordGeneration(b []byte, volume, lba, word int) (uint32, error) {
	found := binary.LittleEndian.Uint64(b[word*8:])
	if found == 0 {
		return 0, nil
	}
	if want := uint64(volume)<<28 | uint64(lba)<<8 | uint64(word); found&(1<<36-1) != want {
		return 0, fmt.Errorf("strange data: word %d is %#016x", word, found)
	}
	return uint32(found >> 36), nil
}
