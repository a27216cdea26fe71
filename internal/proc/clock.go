package proc

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot is the time since boot including sleep (CLOCK_BOOTTIME; CLOCK_MONOTONIC on macOS).
func SinceBoot() time.Duration { return read(clockBoot) }

// Awake is the time since boot that counts no sleep (CLOCK_MONOTONIC on Linux; CLOCK_UPTIME_RAW on macOS).
func Awake() time.Duration { return read(clockAwake) }

// read cannot fail: both clocks exist on every kernel that Go runs on.
func read(clock int32) time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(clock, &t)
	return time.Duration(t.Nano())
}

var boot atomic.Pointer[string]

// BootID tells one boot of the machine from the next; "" where it cannot be read. It is read once: no process lives
// through two boots.
func BootID() string {
	if id := boot.Load(); id != nil {
		return *id
	}
	id, err := bootID()
	if err != nil {
		return "" // out of descriptors, maybe: the next call tries again
	}
	boot.Store(&id)
	return id
}
