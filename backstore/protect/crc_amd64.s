#include "textflag.h"

// bytes of 128 bits in the opposite order: the first byte of the data has the
// highest powers of x.
DATA reverse<>+0(SB)/8, $0x08090a0b0c0d0e0f
DATA reverse<>+8(SB)/8, $0x0001020304050607
GLOBL reverse<>(SB), RODATA, $16

// FOLD moves ACC on by the distance that K stands for and adds NEXT. T is lost.
#define FOLD(ACC, K, NEXT, T) \
	MOVO ACC, T           \
	PCLMULQDQ $0x01, K, T \
	PCLMULQDQ $0x10, K, ACC \
	PXOR T, ACC           \
	PXOR NEXT, ACC

// func fold(b *byte, n int, powers *[4]uint64, remainder *[16]byte)
TEXT ·fold(SB), NOSPLIT, $0-32
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ powers+16(FP), DX
	MOVQ remainder+24(FP), DI
	MOVOU reverse<>(SB), X15
	MOVOU (DX), X14
	MOVOU 16(DX), X13

	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	PSHUFB X15, X0
	PSHUFB X15, X1
	PSHUFB X15, X2
	PSHUFB X15, X3
	ADDQ $64, SI
	SUBQ $64, CX
	JZ join

loop:
	MOVOU (SI), X4
	MOVOU 16(SI), X5
	MOVOU 32(SI), X6
	MOVOU 48(SI), X7
	PSHUFB X15, X4
	PSHUFB X15, X5
	PSHUFB X15, X6
	PSHUFB X15, X7
	FOLD(X0, X14, X4, X8)
	FOLD(X1, X14, X5, X9)
	FOLD(X2, X14, X6, X10)
	FOLD(X3, X14, X7, X11)
	ADDQ $64, SI
	SUBQ $64, CX
	JNZ loop

join:
	FOLD(X0, X13, X1, X8)
	FOLD(X0, X13, X2, X8)
	FOLD(X0, X13, X3, X8)
	PSHUFB X15, X0
	MOVOU X0, (DI)
	RET
