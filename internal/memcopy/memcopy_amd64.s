//go:build !race

#include "textflag.h"

// func move(dst, src unsafe.Pointer, n int)
TEXT ·move(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET

// func StoreOrdered(word *uint64, v uint64)
TEXT ·StoreOrdered(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ CX, (AX)
	RET
