#include "textflag.h"

// func lines(first unsafe.Pointer, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVD first+0(FP), R0
	MOVD n+8(FP), R1
loop:
	PRFM (R0), PLDL2KEEP
	ADD  $64, R0, R0
	SUB  $1, R1, R1
	CBNZ R1, loop
	RET
