#include "textflag.h"

// func lines(first unsafe.Pointer, n int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ n+8(FP), CX
loop:
	PREFETCHT1 (AX)
	ADDQ $64, AX
	DECQ CX
	JNZ  loop
	RET
