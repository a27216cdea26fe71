package awaiter

import "golang.org/x/sys/unix"

// fionread asks how much a FIFO holds; on Linux either end tells.
const fionread = unix.TIOCINQ
