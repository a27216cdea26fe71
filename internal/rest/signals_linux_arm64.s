#include "textflag.h"

// noteSignal is as on amd64.
TEXT noteSignal<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVD ·told(SB), R0
	MOVD $·noteSignalPC(SB), R1 // any byte will do
	MOVD $1, R2
	MOVD $64, R8 // write
	SVC
	RET

DATA ·noteSignalPC(SB)/8, $noteSignal<>(SB)
GLOBL ·noteSignalPC(SB), NOPTR|RODATA, $8
