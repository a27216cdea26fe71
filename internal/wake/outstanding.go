package wake

import (
	"os"
	"syscall"
	"time"

	"vx/internal/atomicfile"
)

// Outstanding tells at the price of two stats whether a queue may hold deliveries that have not ended, so that an await
// can ask at every tick. The zero value asks the disk.
type Outstanding struct{ stages [2]stage }

type stage struct {
	dir  string
	last look
}

// Look reports whether Settle is worth calling: some delivery is there, or may be. Only that there was none is ever
// taken from the last look.
func (o *Outstanding) Look(q *Queue) bool {
	worth := false
	for i := range o.stages {
		s := &o.stages[i]
		if s.dir == "" {
			s.dir = q.join([...]string{".claimed", ".emitted"}[i])
		}
		worth = s.look(time.Now()) || worth
	}
	return worth
}

func (s *stage) look(now time.Time) bool {
	var st syscall.Stat_t
	if err := syscall.Stat(s.dir, &st); err != nil {
		return !os.IsNotExist(err) // Settle will say what it is
	}
	mtime := time.Unix(mtimeOf(&st))
	since := now.Sub(s.last.at)
	if mtime.Equal(s.last.mtime) && s.last.at.Sub(mtime) > coarse && since >= 0 && since < lookAgain {
		return false
	}
	names, err := atomicfile.Names(s.dir)
	if err == nil && len(names) == 0 {
		s.last = look{mtime, now}
		return false
	}
	s.last = look{}
	return true
}
