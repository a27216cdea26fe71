// Package hook runs inside a harness's hook: it reads the hook's input, decides whether to wait, awaits and delivers.
package hook

// Main runs `vx sentinel await` or `vx sentinel drain` and returns the exit status.
func Main(mode string) int { return 0 }
