package sentinel

import (
	"testing"
	"time"
)

// Only on Linux changes are told.

func TestARecordThatNothingIsToldOfIsLookedAtNowAndThen(t *testing.T) {
	c, all := startClaude(t), newClients(func() {})
	t.Cleanup(all.close)
	w := c.known(all)
	if !w.still(all, time.Second) {
		t.Fatal("it is not what it was, and nobody wrote it")
	}
	c.touched(-time.Minute)
	if !w.still(all, 2*time.Second) {
		t.Error("it is looked at again at once, though nothing is told")
	}
	if w.still(all, time.Second+unheard) {
		t.Error("it is never looked at again")
	}
}

func TestARecordIsLookedAtEachTimeWhereNobodyTellsOfIt(t *testing.T) {
	for name, mute := range map[string]func(*clients, *watch){
		"no watch":              func(all *clients, _ *watch) { all.close() },
		"a watch that is lost":  func(all *clients, _ *watch) { all.changes.Close() },
		"any may have changed":  func(all *clients, _ *watch) { all.any = all.number() },
		"forgotten meanwhile":   func(all *clients, w *watch) { all.forget(w.client) },
		"forgotten, and wanted": func(all *clients, w *watch) { all.forget(w.client); all.want(w.client) },
	} {
		t.Run(name, func(t *testing.T) {
			c, all := startClaude(t), newClients(func() {})
			t.Cleanup(all.close)
			w := c.known(all)
			if !w.still(all, time.Second) {
				t.Fatal("it is not what it was, and nobody wrote it")
			}
			mute(all, w)
			c.touched(-time.Minute)
			for end := time.Now().Add(soon); w.still(all, 2*time.Second); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it counts as unchanged")
				}
			}
		})
	}
}
