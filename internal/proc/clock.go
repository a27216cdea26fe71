package proc

import (
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
