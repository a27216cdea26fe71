// Package soldier says what a soldier is doing, and whether it has finished. It is judgement alone: a look goes in, a
// verdict comes out, and nothing is read, asked or written here. What has to last a while before it counts is measured
// in a Memory, by a clock that stands still while the machine sleeps, and over two sweeps at least; so neither a suspend
// nor a restart of the sentinel confirms anything by itself. A crash loses the memories, and every window begins anew.
package soldier

import (
	"time"

	"vx/internal/herdr"
	"vx/internal/task"
)

// Look is what one look at a soldier found. What is nil was not looked at: Judge names in Verdict.Need what it wants.
type Look struct {
	Now   time.Duration // time that the machine was awake
	Wall  time.Time     // the time of day, for stamps and nothing else
	Held  bool          // the socket has begun a new life: nothing is decided
	Agent *herdr.Agent  // as its list has it; nil when it is not in it, and for a session that no herdr knows

	Pane     *Pane
	Client   *Client
	Text     *Text
	Answer   *string // what a session that no herdr shows said at the end of its turn; "" where that is not known
	Pending  *string // what a dialog of such a session is about; "" where that is not known
	Proof    *Proof
	Pause    *Pause
	Fallback *bool // herdr explains idle as what it says when no rule of its own matches
}

// Pane is what herdr says of the pane of an agent that is not in its list.
type Pane int

// PaneUnknown is a pane that herdr could not be asked about, or that has an agent after all.
const (
	PaneUnknown Pane = iota
	PaneGone         // there is no such pane
	PaneEmpty        // it stands, without an agent
)

// Client is what is known of the client's process.
type Client struct {
	State ClientState
	// Status, Waiting and Changed are the record's words.
	Status, Waiting string
	Changed         time.Time
	ID              string // which process and session it is
}

// ClientState says whether there is a record to go by.
type ClientState int

// ClientNone is a client without a valid record: the next evidence decides.
const (
	ClientNone ClientState = iota
	ClientAlive
	ClientGone // its process was known and has ended, and no other took its place
)

// Text is a reading of the pane.
type Text struct {
	Text    string
	Stable  bool // two readings a second apart agreed
	Visible bool // read from what the pane shows, as the better source was refused
	Err     string
}

func (x *Text) readable() bool { return x.Err == "" }

// Proof is what the soldier has delivered.
type Proof struct {
	Head   string    // the branch's commit now, "" where it could not be read
	Commit bool      // it moved since the last dispatch or prompt and is ahead of its base
	Report bool      // the report was written since
	At     time.Time // when the newer of them was made
	Gone   string    // where the repository of the camp was, if nothing is there any more
}

func (p *Proof) any() bool { return p.Commit || p.Report }

// delivers reports whether it is what the task is about: of a scout that was told where to write its report, a commit is
// none.
func (p *Proof) delivers(t *task.Task) bool { return p.Report || p.Commit && t.ReportPath == "" }

// Pause is the soldier's pause file.
type Pause struct {
	Declared bool
	Modified time.Time
}

// Need names what Judge wants looked at before it can say more.
type Need uint

// What can be needed.
const (
	NeedPane   Need = 1 << iota
	NeedClient      // the client's own record
	NeedText        // the pane's text, until two readings a second apart agree
	NeedProof
	NeedPause
	NeedExplain // herdr's explanation of its idle
	NeedAnswer
	NeedPending
	NeedAgain // another look, a second later
)

// Stamps are since when something has been so; zero when it is not.
type Stamps struct{ AgentNotFound, IdleUnconfirmed, Background, PauseSeen, Dialog time.Time }

// Verdict is what a look means for the task.
type Verdict struct {
	Need   Need
	To     task.Status // "" to stay
	Stamps Stamps
	// Dialog says that the commander is to hear that a dialog waits.
	Dialog   bool
	Note     string // for the wake, and for whoever looks at the task
	Output   string // what the pane showed, with a note as its last line where it may lack the report
	Question string
	Options  []string
	// Head and Prompted take the place of the task's own when a finished one works again: what comes after its end is new.
	Head     string
	Prompted time.Time
	Evidence Evidence // State "": nothing was weighed
}

// The times of the rules. All are awake time.
const (
	settle     = 8 * time.Second // after a dispatch or a prompt nothing is decided
	start      = 2 * time.Minute // by then it has to have been seen working
	gone       = 10 * time.Second
	unproven   = 30 * time.Second
	Background = 30 * time.Minute // how long work in the background is waited for
	pausable   = 30 * time.Minute // and a pause
	epoch      = 15 * time.Second // after a new terminal or a sequence that ran backwards
)

// Judge says what a look means for a task. The memory is the task's own. It keeps a look only once nothing more is needed
// of it, so that what was not known yet leaves no trace.
func Judge(t *task.Task, o *Look, m *Memory) Verdict {
	trial := *m
	trial.meet(t, o)
	v := Verdict{Stamps: stampsOf(t)}
	switch {
	case t.Status == task.Running && t.Herdr == nil:
		judgeSession(t, o, &trial, &v)
	case t.Status == task.Running:
		judgeRunning(t, o, &trial, &v)
	case Finished(t.Status):
		judgeFinished(t, o, &trial, &v)
	}
	if v.Need&^NeedAgain == 0 {
		*m = trial
	}
	return v
}

// Finished reports whether a task of this status goes on when its soldier works again.
func Finished(s task.Status) bool {
	return s == task.Done || s == task.Blocked || s == task.Unconfirmed || s == task.Shipped
}

func stampsOf(t *task.Task) Stamps {
	return Stamps{t.AgentNotFoundSince, t.IdleUnconfirmedSince, t.BackgroundSince, t.PauseSeenAt, t.DialogSince}
}

// clear takes every stamp away but that of a pause, which is to be told of when the soldier ends without delivering.
func (s *Stamps) clear() { *s = Stamps{PauseSeen: s.PauseSeen} }

// since sets a stamp unless it stands.
func since(stamp *time.Time, wall time.Time) {
	if stamp.IsZero() {
		*stamp = wall
	}
}
