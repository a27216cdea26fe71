package commander

import "fmt"

// Outlook says what becomes of so many wakes that wait where nobody has an await.
func Outlook(waiting int, live []Entry) string {
	many := fmt.Sprintf("%d wakes wait", waiting)
	if waiting == 1 {
		many = "1 wake waits"
	}
	for _, e := range live {
		if e.Harness == "opencode" && e.Server != nil && e.Server.URL != "" {
			return many + "; the sentinel delivers to opencode"
		}
	}
	return many + "; delivered at the end of the next turn"
}
