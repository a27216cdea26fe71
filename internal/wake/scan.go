package wake

import (
	"os"
	"syscall"
	"time"
)

// Scanner tells at the price of two stats whether a queue may hold something new. The zero value says yes.
type Scanner struct{ boxes [2]look }

// look is what a directory was like when it was last read.
type look struct {
	mtime time.Time
	at    time.Time // when the reading began
}

const (
	coarse    = 2 * time.Second // kernels stamp directories coarsely: a younger stamp may hide a second change
	lookAgain = time.Minute     // whatever the stamps say
)

// Look reports whether Claim is worth calling. Having said so it takes the caller's word that it will be called: ask
// only when a wake could be delivered.
func (s *Scanner) Look(q *Queue) bool {
	now := time.Now()
	worth := false
	for i, box := range boxes {
		var st syscall.Stat_t
		if err := syscall.Stat(q.join(box), &st); err != nil {
			// No queue yet, or one that cannot be asked; the latter Claim will say.
			worth = worth || !os.IsNotExist(err)
			continue
		}
		mtime := time.Unix(mtimeOf(&st))
		seen := &s.boxes[i]
		since := now.Sub(seen.at)
		if mtime.Equal(seen.mtime) && seen.at.Sub(mtime) > coarse && since >= 0 && since < lookAgain {
			continue
		}
		*seen = look{mtime, now}
		worth = true
	}
	return worth
}
