package hook

import (
	"time"

	"vx/internal/claude"
)

// failedWaits is how long wakes wait after one, two, three, and four or more turns in a row that ended in an API error:
// a turn on a failing service is lost, and the wakes that it was to tell with it.
var failedWaits = [...]time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute}

// afterFailure is how long wakes are to wait still for n failed turns, the last of which ended ago. A clock that was set
// back does not make it longer.
func afterFailure(n int, ago time.Duration) time.Duration {
	if n == 0 {
		return 0
	}
	wait := failedWaits[min(n, len(failedWaits))-1]
	return min(max(0, wait-ago), wait)
}

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
	rest := afterFailure(n, ago)
	if rest > 0 && n != a.failures {
		a.log.Info("wakes wait after a failed turn", "in_a_row", n, "for", rest.Round(time.Second))
	}
	a.failures = n
	return rest
}
