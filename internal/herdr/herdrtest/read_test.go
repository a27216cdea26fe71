package herdrtest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

func reading(p *herdrtest.Pane, source string) string {
	return fmt.Sprintf(`{"pane_id":%q,"source":%q}`, p.CurrentID(), source)
}

func TestAReadThatScrollsTheUsersScreenFailsTheTest(t *testing.T) {
	for name, c := range map[string]struct {
		state, method, source string
		fails                 int
	}{
		"recent":                       {"idle", "pane.read", "recent", 1},
		"recent_unwrapped":             {"blocked", "pane.read", "recent_unwrapped", 1},
		"recent through the agent":     {"idle", "agent.read", "recent", 1},
		"a busy agent":                 {"working", "pane.read", "detection", 1},
		"a busy agent's viewport":      {"working", "pane.read", "visible", 1},
		"a busy agent, by agent.read":  {"working", "agent.read", "detection", 1},
		"recent of a busy agent":       {"working", "agent.read", "recent", 2},
		"detection":                    {"idle", "pane.read", "detection", 0},
		"visible":                      {"idle", "agent.read", "visible", 0},
		"a dialog":                     {"blocked", "pane.read", "detection", 0},
		"an agent that is not known":   {"unknown", "pane.read", "detection", 0},
		"output of a busy agent":       {"working", "pane.wait_for_output", "visible", 1},
		"recent output of an idle one": {"idle", "pane.wait_for_output", "recent", 1},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{TB: t}
			srv := start(rec, 20)
			p := srv.Agent(herdrtest.Agent{State: c.state, Screen: "❯ \n"})
			params := reading(p, c.source)
			switch c.method {
			case "agent.read":
				params = strings.Replace(params, "pane_id", "target", 1)
			case "pane.wait_for_output":
				params = strings.Replace(params, "}", `,"match":{"type":"substring","value":"❯"}}`, 1)
			}
			r := ask(t, srv, c.method, params)
			want(t, "complaints", len(rec.complaints()), c.fails)
			if c.fails == 2 {
				want(t, "error", r.code(), "agent_not_idle")
			} else if r.Error != nil {
				t.Error(r.Error)
			}
		})
	}
}

func TestAForbiddenReadFailsTheTestThoughAFaultMeetsIt(t *testing.T) {
	rec := &recorder{TB: t}
	srv := start(rec, 20)
	srv.Inject(herdrtest.Fault{Drop: true, Unserved: true})
	p := srv.Agent(herdrtest.Agent{Name: "a"})
	raw(t, srv, request("pane.read", reading(p, "recent")))
	p.Working()
	raw(t, srv, request("agent.read", `{"target":"a","source":"detection"}`))
	raw(t, srv, request("events.subscribe", `{"subscriptions":[{"type":"pane.output_matched","pane_id":"w1:p2","source":"recent",`+
		`"match":{"type":"substring","value":"x"}}]}`))
	want(t, "complaints", len(rec.complaints()), 3)
}

func TestAReadJustAfterTheAgentBeganIsForgivenWhereTheTestSaysSo(t *testing.T) {
	rec := &recorder{TB: t}
	srv := herdrtest.New(rec, herdrtest.Options{ReadGrace: time.Hour})
	p := srv.Agent(herdrtest.Agent{State: herdrtest.Working})
	must(t, srv, "pane.read", reading(p, "detection"))
	want(t, "complaints", len(rec.complaints()), 0)
	must(t, srv, "pane.read", reading(p, "recent"))
	want(t, "complaints about recent", len(rec.complaints()), 1)
}

func TestAReadGivesTheLastLines(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{AnyRead: true, Validate: schema.Validate})
	p := srv.Agent(herdrtest.Agent{Screen: strings.Repeat("line\n", 99) + "last\n"})
	for _, c := range []struct {
		source, lines string
		want          int
		truncated     bool
	}{
		{"detection", "", 100, false},
		{"visible", "", 100, false},
		{"recent", "", 80, true},
		{"recent_unwrapped", "", 80, true},
		{"detection", `,"lines":3`, 3, true},
		{"visible", `,"lines":100`, 100, false},
		{"recent", `,"lines":2000`, 100, false},
	} {
		r := must(t, srv, "pane.read", strings.Replace(reading(p, c.source), "}", c.lines+"}", 1))
		text, _ := r.at("read.text").(string)
		want(t, c.source+c.lines+" lines", strings.Count(text, "\n"), c.want)
		want(t, c.source+c.lines+" truncated", r.at("read.truncated"), any(c.truncated))
		want(t, c.source+c.lines+" revision", r.at("read.revision"), any(0.0))
		if !strings.HasSuffix(text, "last\n") {
			t.Errorf("%s ends with %q, want the last line", c.source, text[len(text)-10:])
		}
	}
}

func TestAnOldHerdrDoesNotSayWhetherItCut(t *testing.T) {
	srv := start(t, 17)
	r := must(t, srv, "pane.read", reading(srv.Root(), "visible"))
	if _, has := r.at("read").(map[string]any)["truncated"]; has {
		t.Error("protocol 17 says truncated, want it absent")
	}
}

func TestColoursComeOnlyWhenAskedFor(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Screen: "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07\n"})
	coloured := `,"format":"ansi","strip_ansi":false}`
	for params, text := range map[string]string{
		reading(p, "visible"): "red link\n",
		strings.Replace(reading(p, "visible"), "}", coloured, 1):   "\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x07\n",
		strings.Replace(reading(p, "detection"), "}", coloured, 1): "red link\n",
	} {
		want(t, params, must(t, srv, "pane.read", params).at("read.text"), any(text))
	}
}

func TestAUserWhoScrolledBackSeesAnOldViewport(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Screen: "now\n"})
	p.ScrollTo(30, "long ago\n")
	want(t, "visible", must(t, srv, "pane.read", reading(p, "visible")).at("read.text"), any("long ago\n"))
	want(t, "detection", must(t, srv, "pane.read", reading(p, "detection")).at("read.text"), any("now\n"))
	want(t, "scroll", must(t, srv, "pane.get", pane(p)).at("pane.scroll.offset_from_bottom"), any(30.0))
	p.ScrollTo(0, "")
	want(t, "visible again", must(t, srv, "pane.read", reading(p, "visible")).at("read.text"), any("now\n"))
}

func TestAHerdrCanRefuseTheSourceDetection(t *testing.T) {
	srv := herdrtest.New(t, herdrtest.Options{NoDetection: true})
	refused(t, srv, "pane.read", reading(srv.Root(), "detection"), "invalid_request")
	must(t, srv, "pane.read", reading(srv.Root(), "visible"))
}

func TestAWaitForOutputEndsWithTheLine(t *testing.T) {
	srv := start(t, 20)
	p := srv.Agent(herdrtest.Agent{Screen: "one\n"})
	wait := func(match, more string) string {
		return fmt.Sprintf(`{"pane_id":%q,"source":"detection","match":%s%s}`, p.ID, match, more)
	}
	c := dial(t, srv)
	c.put(request("pane.wait_for_output", wait(`{"type":"regex","value":"^tw.$"}`, "")))
	p.Show("one\ntwo\n")
	r := parse(t, c.line())
	want(t, "matched_line", r.at("matched_line"), any("two"))
	refused(t, srv, "pane.wait_for_output", wait(`{"type":"substring","value":"three"}`, `,"timeout_ms":1000`), "timeout")
	refused(t, srv, "pane.wait_for_output", wait(`{"type":"regex","value":"("}`, ""), "invalid_regex")
}
