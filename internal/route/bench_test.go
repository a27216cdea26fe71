package route

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

// A look at a hundred projects in which nothing waits.
func BenchmarkLook(b *testing.B) {
	dir, err := state.OpenAt(filepath.Join(b.TempDir(), "state"))
	if err != nil {
		b.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	var all []*state.Project
	for range 100 {
		p := dir.Project(b.TempDir())
		q := wake.Open(p)
		if err := q.Ensure(); err != nil {
			b.Fatal(err)
		}
		for _, at := range []string{q.Dir(), q.Dir() + "/forum"} {
			if err := os.Chtimes(at, old, old); err != nil {
				b.Fatal(err)
			}
		}
		all = append(all, p)
	}
	r := New(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	r.Look(b.Context(), all)
	b.ReportAllocs()
	for b.Loop() {
		r.Look(b.Context(), all)
	}
}
