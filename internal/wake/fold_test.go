package wake

import (
	"fmt"
	"testing"
	"time"
)

func TestAFieldNameInAnotherCaseDoesNotOutliveANewerWake(t *testing.T) {
	q := open(t)
	drop(t, q, "k.json", `{"TITLE":"older","Detail":"older","mine":1}`)
	put(t, q, Wake{Key: "k", Title: "newer"})
	d := claim(t, q)
	if len(d.Wakes) != 1 || d.Wakes[0].Title != "newer" || d.Wakes[0].Detail != "" || string(d.Wakes[0].extra["mine"]) != "1" {
		t.Errorf("claimed %+v", d.Wakes)
	}
}

// change is a mission's wake that was detected so many seconds after the start.
func change(after int, from, to string) Wake {
	return Wake{ID: fmt.Sprintf("w%d", after), Key: "m-1", Kind: KindMission, TaskID: "m-1", OldStatus: from, NewStatus: to,
		Detected: time.Unix(1e9+int64(after), 0).UTC()}
}

func TestFoldingKeepsTheWholeWayInWhateverOrderItIsPut(t *testing.T) {
	ways := []Wake{change(0, "queued", "running"), change(1, "running", "blocked"), change(2, "blocked", "done")}
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			q := open(t)
			for _, i := range order {
				if _, err := q.Put(t.Context(), ways[i]); err != nil {
					t.Fatal(err)
				}
			}
			l, err := q.List(0)
			if err != nil || len(l.Waiting) != 1 {
				t.Fatalf("%d wakes wait, %v", len(l.Waiting), err)
			}
			w := l.Waiting[0]
			if w.OldStatus != "queued" || w.NewStatus != "done" || w.ID != "w2" {
				t.Errorf("folded into %s: %s -> %s", w.ID, w.OldStatus, w.NewStatus)
			}
			if !w.Detected.Equal(ways[2].Detected) || !w.FirstDetected.Equal(ways[0].Detected) {
				t.Errorf("detected at %v, first at %v", w.Detected, w.FirstDetected)
			}
		})
	}
}
