//go:build e2e

package pi

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"vx/internal/e2e/clients"
)

func TestTwoPisShareOneQueue(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		w.drive(w.project)
		w.awaiting(1)
		w.drive(w.project)
		w.awaiting(2)
		var titles []string
		for i := range 8 {
			titles = append(titles, fmt.Sprintf("the end of work %d.", i))
			w.send(titles[i])
		}
		for _, title := range titles {
			w.delivered(title)
		}
		w.awaiting(2)
	})
}

// What a person or another harness takes by hand is not told to Pi, and the other way round.
func TestAPiAndADrainShareOneQueue(t *testing.T) {
	w := newWorld(t, clients.PiToday)
	w.drive(w.project)
	w.awaiting(1)
	drained := ""
	for i := range 12 {
		w.send(fmt.Sprintf("the end of work %d.", i))
		out, _ := w.run(w.project, filepath.Join(w.home, ".local", "bin", "vx"), "sentinel", "drain")
		drained += out
	}
	w.eventually("the end of all wakes", func() bool { return strings.Count(w.vxIn(w.project, "wake", "log"), "delivered") >= 12 })
	w.awaiting(1)
	byPi := 0
	for i := range 12 {
		title := fmt.Sprintf("the end of work %d.", i)
		n := w.model.Turns(title)
		byPi += n
		if by := n + strings.Count(drained, title); by != 1 {
			t.Errorf("%q was delivered %d times, want once", title, by)
		}
	}
	t.Logf("Pi got %d of 12", byPi)
}

func TestACommanderInAnotherProjectGetsThatProjectsWakes(t *testing.T) {
	forEachPi(t, func(t *testing.T, w *world) {
		other := w.path("other")
		w.newProject(other)
		w.start()
		w.open(other, nil)
		w.eventually("an await there", func() bool { return len(w.awaits(other)) == 1 })
		there := w.awaits(other)[0].Session
		w.vxIn(other, "wake", "send", "--title", "news from there")
		w.send("news from here")
		w.delivered("news from here")
		w.once("news from there")
		names, err := filepath.Glob(w.agent("sessions/*/*" + there + "*.jsonl"))
		if err != nil || len(names) != 1 || w.receiptsIn(names[0], "news from there") != 1 || w.receiptsIn(names[0], "news from here") != 0 {
			t.Errorf("each commander has to have its own project's news alone: %v, %v", names, err)
		}
	})
}
