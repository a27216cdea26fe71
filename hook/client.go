package hook

import (
	"os"
	"strconv"
	"strings"

	"vx/internal/claude"
	"vx/internal/proc"
)

// clientOf finds the process that the commander runs in: the one that CLAUDE_PID names, if it is an ancestor; else the
// nearest ancestor that has a session record or is not a shell. Under dash each hook has a shell of its own as parent,
// which outlives the client. The zero ID where no ancestor can be seen.
func clientOf(c *call) proc.ID {
	ancestors := proc.Ancestors()
	if pid, err := strconv.Atoi(os.Getenv("CLAUDE_PID")); c.claude && err == nil {
		for _, a := range ancestors {
			if a.ID.PID == pid {
				return a.ID
			}
		}
	}
	for _, a := range ancestors {
		if !isShell(a.Name) {
			return a.ID
		}
		if _, ok := claude.SessionOf(a.ID); ok {
			return a.ID
		}
	}
	return proc.ID{}
}

func isShell(name string) bool {
	switch strings.TrimPrefix(name, "-") {
	case "sh", "dash", "bash", "rbash", "zsh", "ksh", "ksh93", "mksh", "ash", "busybox", "fish", "csh", "tcsh":
		return true
	}
	return false
}
