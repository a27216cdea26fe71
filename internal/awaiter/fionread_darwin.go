package awaiter

// fionread asks how much a FIFO holds (FIONREAD of sys/filio.h, which x/sys leaves out).
const fionread = 0x4004667f
