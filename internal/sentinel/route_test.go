package sentinel

import (
	"strings"
	"testing"
	"time"

	"vx/internal/awaiter"
	"vx/internal/commander"
	"vx/internal/herdr/herdrtest"
	"vx/internal/proc"
	"vx/internal/state"
	"vx/internal/wake"
)

func TestAWakeThatNoAwaitAsksForIsBroughtToWhoWaitedBefore(t *testing.T) {
	w := newWorld(t)
	if err := w.shop.Update(func(c *state.Config) { c.Nudge = true }); err != nil {
		t.Fatal(err)
	}
	c := startClaude(t)
	pane := w.herdr.Agent(herdrtest.Agent{Kind: "pi", Name: "chief", Screen: screen("Hello.")})
	pane.OnPrompt(func(*herdrtest.Pane, string) []herdrtest.Step { return []herdrtest.Step{{State: herdrtest.Working}} })
	w.news = func(told *wake.Wake) (string, error) {
		if told.Title == "the old build" {
			return "struck", nil
		}
		return "", nil
	}
	w.start()
	a, err := awaiter.Register(w.dir, w.shop, awaiter.Record{
		Process: proc.Self(), Project: w.shop.Root, Client: c.id, Harness: "pi", Pane: pane.ID, Socket: w.herdr.Socket, Since: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.until("its commander is remembered", func() bool {
		live, _ := commander.Live(w.dir, w.shop)
		return len(live) == 1 && live[0].Typable()
	})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"the old build", "the build"} {
		if _, err := wake.Open(w.shop).Put(t.Context(), wake.Wake{Title: title}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("it is typed", func() bool { return len(pane.Prompts()) > 0 })
	if text := pane.Prompts()[0].Text; !strings.Contains(text, "the build") || strings.Contains(text, "the old build") {
		t.Errorf("typed %q", text)
	}
}
