//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"vx/internal/state"
)

// stopInput is what Claude Code writes to a Stop hook's stdin.
func stopInput(session, transcript string) []byte {
	data, err := json.Marshal(map[string]any{
		"session_id": session, "transcript_path": transcript, "cwd": "/", "permission_mode": "default",
		"hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "done",
	})
	if err != nil {
		panic(err)
	}
	return append(data, '\n')
}

// exits measures the hook where there is nothing to wait for: the price that everybody pays who has the project.
func (b *bench) exits() error {
	elsewhere, err := b.project("elsewhere", "")
	if err != nil {
		return err
	}
	opted, err := b.project("headless", "always")
	if err != nil {
		return err
	}
	hook := func(p *state.Project, attended string) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			return lasts([]string{"CLAUDE_PROJECT_DIR=" + p.Root, "CLAUDE_CODE_SESSION_ATTENDED=" + attended}, b.vx, "sentinel", "await")
		}
	}
	programs := []func() (time.Duration, error){
		func() (time.Duration, error) { return lasts(nil, b.empty) },
		hook(elsewhere, "1"),
		hook(opted, "0"),
	}
	if b.node != "" {
		programs = append(programs, func() (time.Duration, error) { return lasts(nil, b.node, "-e", "") })
	}
	took := make([][]time.Duration, len(programs))
	for range b.pick(200, 40) {
		for i, program := range programs {
			d, err := program()
			if err != nil {
				return err
			}
			took[i] = append(took[i], d)
		}
	}
	empty, outside, headless := median(took[0]), median(took[1]), median(took[2])
	worse := max(outside, headless)
	measured := fmt.Sprintf("the hook's exit with nothing to wait for: %s (no await in this project), %s (headless)", show(outside), show(headless))
	b.add(atMost("exit", measured, "an empty Go program: "+show(empty), ratio(worse, empty), 2, 1.5))
	if b.node == "" {
		return fmt.Errorf("node is not on PATH")
	}
	node := median(took[3])
	b.add(row{"exit", measured, "node -e '': " + show(node), ratio(worse, node), 0.1, "the same", ratio(worse, node) <= 0.1})
	return nil
}

// lasts runs a program as a hook is run, and returns how long it took; it must end with 0 and say nothing.
func lasts(env []string, program string, args ...string) (time.Duration, error) {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stopInput("bench", "")), &out, &out
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil || out.Len() > 0 {
		return 0, fmt.Errorf("%s: %w %s", program, err, out.Bytes())
	}
	return took, nil
}
