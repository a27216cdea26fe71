#include "textflag.h"

// noteSignal is a signal handler: it writes a byte to told, and returns to where the kernel said. It runs on the stack that
// the Go runtime gave the thread for signals, at any moment, so it calls nothing and uses no Go. The kernel restores all
// registers afterwards.
TEXT noteSignal<>(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ ·told(SB), DI
	LEAQ ·noteSignalPC(SB), SI // any byte will do
	MOVQ $1, DX
	MOVQ $1, AX // write
	SYSCALL
	RET

DATA ·noteSignalPC(SB)/8, $noteSignal<>(SB)
GLOBL ·noteSignalPC(SB), NOPTR|RODATA, $8
