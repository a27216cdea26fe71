package commander

import (
	"fmt"
	"strings"
)

// Listens reports whether the commander's session can be told something over HTTP, by whoever finds it there.
func (e Entry) Listens() bool {
	return e.Harness == "opencode" && e.Session != "" && e.Server != nil && (e.Server.URL != "" || e.Server.Second())
}

// Typable reports whether enough is known of the commander's pane to type into it, and into no other.
func (e Entry) Typable() bool { return e.Pane != "" && e.Socket != "" && e.Terminal != "" }

// Second reports whether the server is of OpenCode 2.x: one for all of its user's sessions, found by its own record.
func (s *Server) Second() bool { return strings.HasPrefix(s.Version, "2.") }

// Outlook says what becomes of so many wakes that wait where nobody has an await; nudges says whether they may be typed.
func Outlook(waiting int, live []Entry, nudges bool) string {
	many := fmt.Sprintf("%d wakes wait", waiting)
	if waiting == 1 {
		many = "1 wake waits"
	}
	typed := ""
	for _, e := range live {
		switch {
		case e.Listens():
			return many + "; the sentinel delivers to opencode"
		case nudges && e.Typable():
			typed = fmt.Sprintf("; the sentinel types into pane %s once %s is idle there", e.Pane, e.Harness)
		}
	}
	if typed != "" {
		return many + typed
	}
	return many + "; delivered at the end of the next turn"
}
