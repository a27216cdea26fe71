package hook

import (
	"time"

	"vx/internal/claude"
	"vx/internal/pace"
)

// recovering is how long the client's service is to be left alone after a failed turn. What is known is in the
// transcript alone; only a turn that has failed right now may not stand there yet.
func (a *await) recovering() time.Duration {
	if !a.claude {
		return 0
	}
	n, last := claude.Failures(a.Transcript)
	ago := time.Since(last)
	if n == 0 && a.Event == "StopFailure" {
		n, ago = 1, a.clock()-a.began
	}
	rest := pace.AfterFailure(n, ago)
	if rest > 0 && n != a.failures {
		a.log.Info("wakes wait after a failed turn", "in_a_row", n, "for", rest.Round(time.Second))
	}
	a.failures = n
	return rest
}
