package herdrtest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// commands are those of `herdr agent`, `herdr pane` and `herdr api`.
func commands() map[string]*command {
	reading := []string{"source", "lines", "format"}
	return map[string]*command{
		"agent list":      {use: "agent list", do: plainly("agent.list")},
		"agent get":       {use: "agent get <target>", least: 1, most: 1, do: plainly("agent.get", "target")},
		"agent focus":     {use: "agent focus <target>", least: 1, most: 1, do: plainly("agent.focus", "target")},
		"agent explain":   {use: "agent explain <target>", least: 1, most: 1, switches: []string{"json", "verbose"}, do: plainly("agent.explain", "target")},
		"agent rename":    {use: "agent rename <target> <name>|--clear", least: 1, most: 2, switches: []string{"clear"}, do: (*cli).rename},
		"agent send-keys": {use: "agent send-keys <target> <key>...", least: 2, most: -1, do: (*cli).agentKeys},
		"agent read":      {use: "agent read <target>", least: 1, most: 1, values: reading, switches: []string{"ansi"}, do: reads("agent.read", "target")},
		"agent prompt": {
			use: "agent prompt <target> <text> [--wait [--until S]... [--timeout MS]]", least: 2, most: 2,
			values: []string{"until", "timeout"}, switches: []string{"wait"}, do: (*cli).prompt,
		},
		"agent wait": {
			use: "agent wait <target> [--until S]... [--timeout MS]", least: 1, most: 1,
			values: []string{"until", "timeout"}, do: (*cli).wait,
		},
		"agent start": {
			use: "agent start <name> --kind K --pane P [--timeout MS] [-- args]", least: 1, most: 1,
			values: []string{"kind", "pane", "timeout"}, do: (*cli).start,
		},
		"pane list":         {use: "pane list [--workspace W]", values: []string{"workspace"}, do: (*cli).panes},
		"pane get":          {use: "pane get <pane>", least: 1, most: 1, do: plainly("pane.get", "pane_id")},
		"pane close":        {use: "pane close <pane>", least: 1, most: 1, do: plainly("pane.close", "pane_id")},
		"pane process-info": {use: "pane process-info [<pane>]", most: 1, do: plainly("pane.process_info", "pane_id")},
		"pane current":      {use: "pane current [--pane P|--current]", values: []string{"pane"}, switches: []string{"current"}, do: (*cli).current},
		"pane read":         {use: "pane read <pane>", least: 1, most: 1, values: reading, switches: []string{"ansi"}, do: reads("pane.read", "pane_id")},
		"pane run":          {use: "pane run <pane> <command>...", least: 2, most: -1, do: (*cli).runIn},
		"pane send-text":    {use: "pane send-text <pane> <text>", least: 2, most: 2, do: (*cli).paneText},
		"pane send-keys":    {use: "pane send-keys <pane> <key>...", least: 2, most: -1, do: (*cli).paneKeys},
		"pane split": {
			use: "pane split [<pane>] --direction right|down", most: 1, values: []string{"direction", "cwd", "env"},
			switches: []string{"focus", "no-focus"}, do: (*cli).split,
		},
		"pane wait-output": {
			use: "pane wait-output <pane> --match TEXT|--regex RE", least: 1, most: 1,
			values: []string{"match", "regex", "source", "lines", "timeout"}, do: (*cli).waitOutput,
		},
		"api snapshot": {use: "api snapshot", do: plainly("session.snapshot")},
	}
}

// plainly makes a request of the positional arguments and prints its answer.
func plainly(method string, names ...string) func(*cli, given) error {
	return func(c *cli, g given) error {
		params := map[string]any{}
		for i, word := range g.words {
			params[names[i]] = word
		}
		return c.printed(method, params)
	}
}

// reads prints the raw text of a read. Its default source is one that scrolls the user's screen.
func reads(method, target string) func(*cli, given) error {
	return func(c *cli, g given) error {
		source, err := g.source()
		if err != nil {
			return err
		}
		params := map[string]any{target: g.words[0], "source": source, "format": "text"}
		if g.has("format") {
			params["format"] = g.flag("format")
		}
		if g.has("ansi") {
			params["format"] = "ansi"
		}
		params["strip_ansi"] = params["format"] == "text"
		if err := g.number(params, "lines", "lines"); err != nil {
			return err
		}
		_, result, err := c.call(method, params)
		if err != nil {
			return err
		}
		read, _ := result["read"].(map[string]any)
		text, _ := read["text"].(string)
		_, err = io.WriteString(c.out, text)
		return err
	}
}

// source is where to read: recent unless another is named. As in herdr a bad one is no usage error.
func (g given) source() (string, error) {
	switch source := g.flag("source"); source {
	case "":
		return "recent", nil
	case "visible", "recent", "recent-unwrapped", "detection":
		return strings.ReplaceAll(source, "-", "_"), nil
	default:
		return "", fmt.Errorf("invalid source: %s", source)
	}
}

func (c *cli) rename(g given) error {
	params := map[string]any{"target": g.words[0], "name": nil}
	switch {
	case len(g.words) == 2 && !g.has("clear"):
		params["name"] = g.words[1]
	case len(g.words) == 2 || !g.has("clear"):
		return usageError("usage: herdr agent rename <target> <name>|--clear")
	}
	return c.printed("agent.rename", params)
}

func (c *cli) agentKeys(g given) error {
	return c.printed("agent.send_keys", map[string]any{"target": g.words[0], "keys": g.words[1:]})
}

func (c *cli) paneKeys(g given) error {
	return c.silent("pane.send_keys", map[string]any{"pane_id": g.words[0], "keys": g.words[1:]})
}

func (c *cli) paneText(g given) error {
	return c.silent("pane.send_text", map[string]any{"pane_id": g.words[0], "text": g.words[1]})
}

func (c *cli) runIn(g given) error {
	return c.silent("pane.send_input", map[string]any{
		"pane_id": g.words[0], "text": strings.Join(g.words[1:], " "), "keys": []string{"Enter"},
	})
}

// until are the parameters of a wait.
func (g given) until() (map[string]any, error) {
	params := map[string]any{}
	if g.has("until") {
		params["until"] = g.flags["until"]
	}
	return params, g.number(params, "timeout", "timeout_ms")
}

func (c *cli) prompt(g given) error {
	params := map[string]any{"target": g.words[0], "text": g.words[1]}
	if !g.has("wait") && (g.has("until") || g.has("timeout")) {
		return usageError("--until and --timeout need --wait")
	}
	if g.has("wait") {
		wait, err := g.until()
		if err != nil {
			return err
		}
		params["wait"] = wait
	}
	return c.printed("agent.prompt", params)
}

func (c *cli) wait(g given) error {
	params, err := g.until()
	if err != nil {
		return err
	}
	params["target"] = g.words[0]
	return c.printed("agent.wait", params)
}

// start waits itself until the agent can take a prompt; the server answers while it is still starting.
func (c *cli) start(g given) error {
	if !g.has("kind") || !g.has("pane") {
		return usageError("usage: herdr agent start <name> --kind K --pane P [--timeout MS] [-- args]")
	}
	params := map[string]any{"name": g.words[0], "kind": g.flag("kind"), "pane_id": g.flag("pane"), "args": append([]string{}, g.rest...)}
	params["timeout_ms"] = uint64(defaultStartMS)
	if err := g.number(params, "timeout", "timeout_ms"); err != nil {
		return err
	}
	_, started, err := c.call("agent.start", params)
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Duration(params["timeout_ms"].(uint64)) * time.Millisecond)
	for time.Now().Before(end) {
		agent, err := c.ready(g.words[0], g.flag("kind"))
		if err != nil {
			return err
		}
		if agent != nil {
			started["agent"] = agent
			return json.NewEncoder(c.out).Encode(map[string]any{"id": "cli", "result": started})
		}
		time.Sleep(100 * time.Millisecond)
	}
	return errorf("agent_start_failed", "agent %s was not ready in time", g.words[0])
}

// ready is the agent once it is idle and takes input; nil until then.
func (c *cli) ready(name, kind string) (any, error) {
	_, result, err := c.call("agent.get", map[string]any{"target": name})
	if err != nil {
		return nil, errorf("agent_name_not_found", "agent %s is gone: %v", name, err)
	}
	agent, _ := result["agent"].(map[string]any)
	if found, has := agent["agent"]; has && found != kind {
		return nil, errorf("agent_kind_mismatch", "agent %s is %v, want %s", name, found, kind)
	}
	switch status := agent["agent_status"]; {
	case status == Blocked:
		return nil, errorf("agent_not_ready", "agent %s is blocked at its start", name)
	case (status == Idle || status == Done) && agent["interactive_ready"] == true:
		return agent, nil
	}
	return nil, nil
}

func (c *cli) panes(g given) error {
	params := map[string]any{}
	if g.has("workspace") {
		params["workspace_id"] = g.flag("workspace")
	}
	return c.printed("pane.list", params)
}

// current is the pane that the command runs in, unless another is named; --current asks for the one with the focus.
func (c *cli) current(g given) error {
	params := map[string]any{}
	switch {
	case g.has("pane"):
		params["caller_pane_id"] = g.flag("pane")
	case !g.has("current") && c.getenv("HERDR_PANE_ID") != "":
		params["caller_pane_id"] = c.getenv("HERDR_PANE_ID")
	}
	return c.printed("pane.current", params)
}

func (c *cli) split(g given) error {
	if !g.has("direction") {
		return usageError("usage: herdr pane split [<pane>] --direction right|down")
	}
	params := map[string]any{"direction": g.flag("direction"), "focus": g.has("focus")}
	if len(g.words) > 0 {
		params["target_pane_id"] = g.words[0]
	}
	if g.has("cwd") {
		params["cwd"] = g.flag("cwd")
	}
	if g.has("env") {
		env := map[string]string{}
		for _, pair := range g.flags["env"] {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		params["env"] = env
	}
	return c.printed("pane.split", params)
}

func (c *cli) waitOutput(g given) error {
	match := map[string]any{"type": "substring", "value": g.flag("match")}
	if g.has("regex") {
		match = map[string]any{"type": "regex", "value": g.flag("regex")}
	}
	if g.has("regex") == g.has("match") {
		return usageError("usage: herdr pane wait-output <pane> --match TEXT|--regex RE")
	}
	source, err := g.source()
	if err != nil {
		return err
	}
	params := map[string]any{"pane_id": g.words[0], "source": source, "match": match}
	if err := g.number(params, "lines", "lines"); err != nil {
		return err
	}
	if err := g.number(params, "timeout", "timeout_ms"); err != nil {
		return err
	}
	return c.printed("pane.wait_for_output", params)
}
