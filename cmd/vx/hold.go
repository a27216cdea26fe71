//go:build !windows

package main

import (
	"slices"
	"strings"

	"vx/hook"
)

// harnesses are those whose client holds its deliveries.
var harnesses = []string{"pi", "opencode"}

// holderOf reads `vx sentinel await --hold …` without building the grammar: the process waits for an hour. Anything that
// is not understood is left to the grammar, which says what is wrong with it.
func holderOf(args []string) (h hook.Holder, ok bool) {
	if len(args) < 3 || args[0] != "sentinel" || args[1] != "await" || args[2] != "--hold" {
		return h, false
	}
	into := map[string]*string{"--harness": &h.Harness, "--session": &h.Session, "--transcript": &h.Transcript}
	for rest := args[3:]; len(rest) > 0; {
		name, value, joined := strings.Cut(rest[0], "=")
		rest = rest[1:]
		if !joined && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			value, joined, rest = rest[0], true, rest[1:]
		}
		if into[name] == nil || !joined {
			return h, false
		}
		*into[name] = value
	}
	return h, h.Harness == "" || slices.Contains(harnesses, h.Harness)
}
