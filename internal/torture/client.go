//go:build !windows

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// client stands in for Claude Code: a process that starts the hook and can be killed, and the transcript of its session.
// What it writes there has the real client's shape (testdata/transcripts).
type client struct {
	cmd        *exec.Cmd
	orders     *json.Encoder
	endings    *json.Decoder
	stdin      io.Closer
	session    string
	transcript string // "" where it writes none
}

// newClient starts a client's process. Its transcript is made in dir, unless that is "".
func newClient(dir, session string) (*client, error) {
	c := &client{cmd: reexec(order{Task: asClient}), session: session}
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c.stdin, c.orders, c.endings = stdin, json.NewEncoder(stdin), json.NewDecoder(stdout)
	if dir != "" {
		c.transcript = filepath.Join(dir, session+".jsonl")
		if err := c.write(map[string]any{"type": "mode", "mode": "normal"}, userRow("hello there", "human")); err != nil {
			c.kill()
			return nil, fmt.Errorf("client: %w", err)
		}
	}
	return c, nil
}

// perform has the client run a consumer.
func (c *client) perform(o order) (e ending) {
	if o.Task == asAwait {
		input, err := json.Marshal(map[string]any{
			"session_id": c.session, "transcript_path": c.transcript, "cwd": o.Root,
			"hook_event_name": "Stop", "stop_hook_active": false,
		})
		if err != nil {
			return ending{Trouble: err.Error()}
		}
		o.Stdin = string(input)
	}
	err := c.orders.Encode(o)
	if err == nil {
		err = c.endings.Decode(&e)
	}
	if err != nil {
		e.Trouble = "client: " + err.Error()
	}
	return e
}

// kill ends the client as a crash would. What it has in its own queue is gone with it.
func (c *client) kill() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
	c.stdin.Close()
}

// clear begins a new session in the same process.
func (c *client) clear(session string) {
	c.session, c.transcript = session, filepath.Join(filepath.Dir(c.transcript), session+".jsonl")
}

// write appends rows to the transcript, each in one write.
func (c *client) write(rows ...map[string]any) error {
	f, err := os.OpenFile(c.transcript, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	enc := json.NewEncoder(f)
	enc.SetEscapeHTML(false) // neither does the client
	for _, row := range rows {
		row["sessionId"], row["timestamp"] = c.session, time.Now().UTC().Format(time.RFC3339Nano)
		if err := enc.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// notification is how the client shows a hook's text to the model.
func notification(text string) string {
	return "<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\n" +
		"Stop hook blocking error from command \"Stop\": " + text + "\n</system-reminder>"
}

func enqueueRow(text string) map[string]any {
	return map[string]any{"type": "queue-operation", "operation": "enqueue", "content": notification(text)}
}

func dequeueRow() map[string]any {
	return map[string]any{"type": "queue-operation", "operation": "dequeue"}
}

func userRow(text, origin string) map[string]any {
	return map[string]any{
		"type": "user", "message": map[string]any{"role": "user", "content": text},
		"origin": map[string]any{"kind": origin}, "isSidechain": false, "userType": "external",
	}
}

func turnRow(text string) map[string]any { return userRow(notification(text), "task-notification") }

func assistantRow(text string, failed bool) map[string]any {
	row := map[string]any{"type": "assistant", "message": map[string]any{
		"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}},
	}}
	if failed {
		row["isApiErrorMessage"] = true
	}
	return row
}

// listingRows are a turn in which the model ran `vx wake list`: ids and titles that prove nothing.
func listingRows(lines []string) []map[string]any {
	result := []any{map[string]any{"type": "tool_result", "tool_use_id": "toolu_1", "content": strings.Join(lines, "\n")}}
	return []map[string]any{
		{"type": "assistant", "message": map[string]any{"role": "assistant", "content": []any{map[string]any{
			"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": map[string]any{"command": "vx wake list"}}}}},
		{"type": "user", "message": map[string]any{"role": "user", "content": result}},
	}
}
