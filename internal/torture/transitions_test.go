//go:build !windows

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"vx/internal/wake"
)

func TestTheTurnsAreComparedWithWhatWasTold(t *testing.T) {
	for _, tt := range []struct {
		name string
		told []string // wakes
		want string   // in a complaint; "" for none
	}{
		{"all told", []string{`{"turn_1":true}`, `{"turn_3":true}`}, ""},
		{"all told in one", []string{`{"turn_1":true,"turn_3":true}`}, ""},
		{"one never told", []string{`{"turn_1":true}`}, "lost: turn 3"},
		{"one told of that did not happen", []string{`{"turn_1":true,"turn_2":true,"turn_3":true}`}, "invented: turn 2"},
		{"one told of that was not begun", []string{`{"turn_1":true,"turn_3":true}`, `{"turn_4":true}`}, "invented: turn 4"},
		{"one told twice", []string{`{"turn_1":true}`, `{"turn_1":true,"turn_3":true}`}, "told 2 times: turn 1"},
		{"a wake without a turn", []string{`{"turn_1":true,"turn_3":true}`, `{"title":"x"}`}, "invented: {"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turns := &turns{happened: map[int64]bool{1: true, 2: false, 3: true}, told: map[int64]int{}}
			for _, data := range tt.told {
				var w wake.Wake
				if err := json.Unmarshal([]byte(data), &w); err != nil {
					t.Fatal(err)
				}
				if err := turns.tell(w); err != nil {
					turns.complain("%v", err)
				}
			}
			turns.judge()
			got := strings.Join(turns.wrong, "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("complaints %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEachStepOfATurnIsKilledAtAndNothingIsLost(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // not a second more for each of hundreds of processes under the race detector
	openState(t)
	turns := &turns{
		plan: plan{seed: 1}, random: 5, each: 1, deadline: time.Now().Add(killTime),
		happened: map[int64]bool{}, told: map[int64]int{}, at: map[wake.Step]int{}, usual: 10 * time.Millisecond,
	}
	if err := turns.run(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	turns.judge()
	for _, wrong := range turns.wrong {
		t.Error(wrong)
	}
}
