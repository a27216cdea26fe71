package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"vx/internal/awaiter"
	"vx/internal/proc"
	"vx/internal/wake"
)

// openCodeWait is how long an OpenCode client may leave a delivery without a word, not counting the machine's sleep:
// other ways lead to it, and the wake must be free to go one of them.
const openCodeWait = 30 * time.Second

// Holder is the client of `vx sentinel await --hold`: a program that takes a delivery and says later whether its model
// got it.
type Holder struct {
	Harness    string // "pi", "opencode", "" for any other
	Session    string
	Transcript string // path; "" for none
}

// Hold runs `vx sentinel await --hold` and returns the exit status, which is never 2. Nothing is ever written to stderr.
//
// It waits like Main's await, but that stdin carries the client's commands (see orders), and that its end means that the
// client is gone. A delivery is one line of JSON on stdout, {"token","text"}. Then the process stays, the delivery in
// hand, until the client says that the model has it, or that it cannot have it, or can say nothing any more.
func (p Program) Hold(h Holder) (status int) {
	parent := os.Getppid()
	if os.Getenv("VX_HOOK") == "0" || !heard(1) {
		return 0
	}
	log := newLog("hold")
	out, err := shield()
	if err != nil {
		log.Error("streams", "err", err)
		return 0
	}
	unix.Close(out.stderr)
	out.stderr = -1
	end := ending{mode: "hold"}
	defer end.recover(&status)
	c := p.holderGate(h, log)
	if c == nil {
		return 0
	}
	crashLog()
	k := p.courier(c, log, &end)
	k.client, k.out = clientOf(c), out
	if p.Watched != nil && p.Watched(c.project, k.client) {
		return 0
	}
	a := p.await(k, parent)
	a.orders = &orders{fd: 0, log: log}
	return a.run(context.Background())
}

// hand gives a delivery to a client that holds it, and stays until its fate is known.
func (a *await) hand(ctx context.Context, d *wake.Delivery) outcome {
	a.complain("hold", a.bell.Hold(true))
	out := a.handOver(ctx, d)
	if out == kept {
		a.complain("hold", a.bell.Hold(false))
	}
	return out
}

func (a *await) handOver(ctx context.Context, d *wake.Delivery) outcome {
	line, err := holdLine(d)
	if err == nil {
		err = d.Note(a.recipient())
	}
	if err != nil {
		a.release(ctx, d, "it could not be noted whom they go to", err)
		return kept
	}
	if err := a.step(wake.Printing); err != nil {
		a.release(ctx, d, "they could not be printed", err)
		return kept
	}
	if err := writeWhole(a.out.stdout, line, time.Now().Add(printWait)); err != nil {
		a.release(ctx, d, "they could not be printed whole", err)
		return refused
	}
	if err := a.step(wake.Printed); err != nil {
		a.release(ctx, d, "they could not be held", err)
		return refused
	}
	a.complain("hold", d.Held())
	if d.More > 0 {
		awaiter.Ring(a.dir, a.project) // for the others: this one takes no more
	}
	return a.hold(ctx, d)
}

// holdLine is what a client that holds a delivery reads.
func holdLine(d *wake.Delivery) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Token string `json:"token"`
		Text  string `json:"text"`
	}{d.Token, d.Text})
	return line.Bytes(), err
}

// hold waits for the client's word. There is no end to it but the client's, a signal, and for OpenCode half a minute; and
// before any of them counts, so does a word that is in the pipe already.
func (a *await) hold(ctx context.Context, d *wake.Delivery) outcome {
	since := a.awake()
	for {
		seen, err := a.watch.wait(a.holdPause(since))
		why := a.left(seen)
		if err != nil {
			why = "streams: " + err.Error()
		}
		if seen.rung {
			a.bell.Answer()
			a.bell.RingAfter()
		}
		v := a.orders.of(d.Token)
		if why == "" && a.orders.over {
			why = "the client closed stdin"
		}
		if v == noVerdict && why != "" {
			v = a.orders.last(d.Token)
		}
		if a.client.Status() == proc.Stopped {
			since = a.awake()
		}
		switch {
		case v == acked:
			if err := d.Accepted("acknowledged"); err != nil {
				// The model has it: Settle ends what could not be ended here.
				a.log.Error("accept", "err", err)
			}
			return delivered
		case v == nacked:
			why = "the client could not take them"
		case why == "" && a.harness == "opencode" && a.awake()-since >= openCodeWait:
			why = "not acknowledged"
		}
		if why != "" {
			if v == noVerdict && a.told(d) {
				return delivered
			}
			a.release(ctx, d, why, nil)
			return refused
		}
		a.settle(ctx)
	}
}

// told reports whether the client's session shows that the model has the text, although the client did not say so: it may
// have died in between. Then the delivery is over.
func (a *await) told(d *wake.Delivery) bool {
	told, err := d.EndIfTold()
	if err != nil {
		a.log.Error("receipt", "err", err)
	}
	return told
}

// holdPause is how long to wait for something to happen while a delivery is held.
func (a *await) holdPause(since time.Duration) time.Duration {
	if a.harness != "opencode" {
		return tick
	}
	return min(tick, max(openCodeWait-(a.awake()-since), 0))
}
