package herdr_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"vx/internal/herdr"
	"vx/internal/herdr/herdrtest"
	"vx/internal/herdr/herdrtest/schema"
)

const patient = 30 * time.Second

// The fake was written from the description of herdr alone, as the client was: here they meet.
func fake(t *testing.T, profile int, speed float64) (*herdrtest.Server, *herdr.Client) {
	t.Helper()
	srv := herdrtest.New(t, herdrtest.Options{Profile: profile, Speed: speed, Validate: schema.Validate})
	return srv, &herdr.Client{Socket: srv.Socket, Deadline: patient}
}

func forEachProfile(t *testing.T, test func(t *testing.T, profile int)) {
	for _, profile := range []int{17, 19, 20, 22} {
		t.Run(fmt.Sprint(profile), func(t *testing.T) { test(t, profile) })
	}
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheClientFindsItsWayAroundEveryHerdr(t *testing.T) {
	forEachProfile(t, func(t *testing.T, profile int) {
		srv, c := fake(t, profile, 20)
		ctx := t.Context()
		soldier := srv.Agent(herdrtest.Agent{Kind: "claude", Name: "soldier-a", Title: "✳ work", Screen: "❯ \n", Session: "s-1", CWD: "/home/u"})
		soldier.Foreground(herdrtest.Process{PID: 4711, Name: "claude", Argv: []string{"claude", "--name", "soldier-a"}})
		soldier.ShellPID(4700)

		pong, err := c.Ping(ctx)
		if must(t, pong, err).Protocol != profile || pong.Old() {
			t.Errorf("pong is %+v", pong)
		}
		agents, err := c.Agents(ctx)
		must(t, agents, err)
		if len(agents) != 1 {
			t.Fatalf("agents are %+v", agents)
		}
		listed := agents[0]
		got := listed
		got.TerminalID, got.Seq, got.TabID, got.ForegroundCWD = "", 0, "", ""
		got.Session.Source = ""
		if diff := cmp.Diff(herdr.Agent{
			Name: "soldier-a", Kind: "claude", Status: herdr.Idle, WorkspaceID: "w1", PaneID: soldier.ID, Title: "✳ work", CWD: "/home/u",
			HasSeq: true, InteractiveReady: true, Session: herdr.Session{Agent: "claude", Kind: "id", Value: "s-1"},
		}, got); diff != "" {
			t.Error(diff)
		}
		for _, target := range []string{"soldier-a", soldier.ID} {
			one, err := c.Agent(ctx, target)
			if diff := cmp.Diff(listed, must(t, one, err)); diff != "" {
				t.Error(diff)
			}
		}
		_, err = c.Agent(ctx, listed.TerminalID)
		if herdr.Code(err) != herdr.AgentNotFound {
			t.Errorf("a terminal's id as a target: %v", err)
		}
		pane, err := c.Pane(ctx, soldier.ID)
		if must(t, pane, err).TerminalID != listed.TerminalID || pane.Kind != "claude" || pane.Title != "✳ work" {
			t.Errorf("pane is %+v", pane)
		}
		_, err = c.Pane(ctx, "w1:p99")
		if herdr.Code(err) != herdr.PaneNotFound {
			t.Errorf("a pane that is not there: %v", err)
		}
		current, err := c.Current(ctx, soldier.ID)
		if must(t, current, err).PaneID != soldier.ID {
			t.Errorf("current pane is %+v", current)
		}
		for _, source := range []herdr.Source{herdr.Detection, herdr.Visible} {
			reading, err := c.Read(ctx, soldier.ID, source, 0)
			if !strings.Contains(must(t, reading, err).Text, "❯") {
				t.Errorf("%s reads %q", source, reading.Text)
			}
		}
		processes, err := c.Processes(ctx, soldier.ID)
		if diff := cmp.Diff([]herdr.Process{{PID: 4711, Name: "claude", Argv: []string{"claude", "--name", "soldier-a"}}}, must(t, processes, err).Foreground); diff != "" {
			t.Error(diff)
		}
		if processes.Shell != 4700 {
			t.Errorf("shell is %d", processes.Shell)
		}
		sure, err := c.Explain(ctx, soldier.ID)
		if must(t, sure, err).FallbackReason != "" || sure.State != herdr.Idle {
			t.Errorf("explanation is %+v", sure)
		}
		soldier.Fallback(true)
		guess, err := c.Explain(ctx, soldier.ID)
		if must(t, guess, err).FallbackReason == "" {
			t.Errorf("explanation of a guess is %+v", guess)
		}
		if err := c.SendKeys(ctx, soldier.ID, "Esc", "Enter"); err != nil || !slices.Equal(soldier.Keys(), []string{"Esc", "Enter"}) {
			t.Errorf("keys are %q, %v", soldier.Keys(), err)
		}
	})
}

func TestASoldierIsStartedPromptedAndClosed(t *testing.T) {
	forEachProfile(t, func(t *testing.T, profile int) {
		srv, c := fake(t, profile, 20)
		ctx := t.Context()
		tab, err := c.CreateTab(ctx, herdr.Tab{Workspace: "w1", Label: "soldier", CWD: "/", Env: map[string]string{"VX": "1"}})
		must(t, tab, err)
		if !slices.Contains(srv.Pane(tab.PaneID).Env(), "VX=1") {
			t.Errorf("environment is %q", srv.Pane(tab.PaneID).Env())
		}
		split, err := c.Split(ctx, herdr.Split{Pane: tab.PaneID, Down: true, CWD: "/"})
		if must(t, split, err).TabID != tab.TabID || split.PaneID == tab.PaneID {
			t.Errorf("split of %+v is %+v", tab, split)
		}
		space, err := c.CreateWorkspace(ctx, herdr.Tab{Label: "other", CWD: "/"})
		if must(t, space, err).WorkspaceID == "w1" {
			t.Errorf("workspace's pane is %+v", space)
		}
		if err := c.ClosePane(ctx, split.PaneID); err != nil {
			t.Error(err)
		}
		if _, err := c.Pane(ctx, split.PaneID); herdr.Code(err) != herdr.PaneNotFound {
			t.Errorf("closed pane: %v", err)
		}

		_, err = c.Start(ctx, herdr.Start{Name: "soldier-b", Kind: "claude", Pane: tab.PaneID, Args: []string{"--name", "b"}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var agent herdr.Agent
		srv.Await(patient, func() bool {
			agent, err = c.Agent(ctx, "soldier-b")
			return err == nil && agent.Status.Rests() && agent.InteractiveReady && !agent.LaunchPending
		})
		if _, err := c.Start(ctx, herdr.Start{Name: "soldier-b", Kind: "claude", Pane: space.PaneID}); herdr.Code(err) != herdr.AgentNameTaken {
			t.Errorf("the name again: %v", err)
		}
		if _, err := c.Prompt(ctx, "soldier-b", "add a <changelog> entry"); err != nil {
			t.Fatal(err)
		}
		soldier := srv.Pane(tab.PaneID)
		srv.Await(patient, func() bool {
			now, err := c.Agent(ctx, "soldier-b")
			return err == nil && now.Status == herdr.Working && now.Seq > agent.Seq
		})
		if p := soldier.Prompts(); len(p) != 1 || p[0].Text != "add a <changelog> entry" {
			t.Errorf("prompts are %+v", p)
		}
		soldier.Idle()
		srv.Await(patient, func() bool {
			now, err := c.Agent(ctx, "soldier-b")
			return err == nil && now.Status.Rests()
		})
	})
}

func TestAStreamToldOfWhatHappens(t *testing.T) {
	forEachProfile(t, func(t *testing.T, profile int) {
		srv, c := fake(t, profile, 20)
		soldier := srv.Agent(herdrtest.Agent{Name: "soldier-a"})
		other := srv.Agent(herdrtest.Agent{Name: "soldier-b"})
		if _, err := c.Subscribe(t.Context(), []string{soldier.ID, "w1:p99"}); herdr.Code(err) != herdr.PaneNotFound {
			t.Errorf("a pane that is not there: %v", err)
		}
		s, err := c.Subscribe(t.Context(), []string{soldier.ID})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		next := func(wanted func(herdr.Event) bool) {
			t.Helper()
			for {
				e, err := s.Next()
				if err != nil {
					t.Fatal(err)
				}
				if wanted(e) {
					return
				}
			}
		}
		soldier.Working()
		next(func(e herdr.Event) bool { return e.PaneID == soldier.ID && e.Status == herdr.Working })
		soldier.Idle()
		next(func(e herdr.Event) bool { return e.PaneID == soldier.ID && e.Status.Rests() })
		other.Close()
		next(func(e herdr.Event) bool { return e.PaneID == other.ID && e.Type == "pane_closed" })
		soldier.Exit()
		next(func(e herdr.Event) bool { return e.PaneID == soldier.ID && e.Released })
		go srv.Stop()
		for err == nil {
			_, err = s.Next()
		}
		if err != io.EOF {
			t.Errorf("herdr stopped: %v", err)
		}
	})
}

func TestEachFaultOfTheFakeIsToldApart(t *testing.T) {
	forEachProfile(t, func(t *testing.T, profile int) {
		srv, c := fake(t, profile, 1)
		for i := range 20 {
			srv.Agent(herdrtest.Agent{Name: fmt.Sprintf("soldier-%d", i)})
		}
		good, err := c.Agents(t.Context())
		must(t, good, err)
		short := &herdr.Client{Socket: srv.Socket, Deadline: 100 * time.Millisecond}
		for name, test := range map[string]struct {
			client *herdr.Client
			fault  herdrtest.Fault
			want   error // nil: the list is as it was
		}{
			"hang":            {short, herdrtest.Fault{Hang: true}, herdr.ErrTimeout},
			"delay":           {short, herdrtest.Fault{Delay: time.Second, Times: 1}, herdr.ErrTimeout},
			"drop":            {c, herdrtest.Fault{Drop: true}, herdr.ErrCut},
			"unserved":        {c, herdrtest.Fault{Unserved: true, Drop: true}, herdr.ErrCut},
			"half a line":     {c, herdrtest.Fault{Half: true}, herdr.ErrCut},
			"garbage":         {c, herdrtest.Fault{Line: []byte("\x1b[2J garbage")}, herdr.ErrGarbage},
			"JSON of another": {c, herdrtest.Fault{Line: []byte(`{"jsonrpc":"2.0","result":{"type":"agent_list","agents":[]}}`)}, herdr.ErrGarbage},
			"oversize":        {c, herdrtest.Fault{Oversize: 17 << 20}, herdr.ErrGarbage},
			"split writes":    {c, herdrtest.Fault{Split: 7}, nil},
			"two lines":       {c, herdrtest.Fault{Extra: []byte(`{"id":"x","result":{"type":"agent_list","agents":[]}}`)}, nil},
			"unknown fields":  {c, herdrtest.Fault{Fields: true}, nil},
		} {
			lift := srv.Inject(test.fault)
			got, err := test.client.Agents(t.Context())
			lift()
			if test.want != nil {
				if !errors.Is(err, test.want) || got != nil {
					t.Errorf("%s: %v, %d agents", name, err, len(got))
				}
			} else if diff := cmp.Diff(good, must(t, got, err)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}

		lift := srv.Inject(herdrtest.Fault{Status: "pondering"})
		odd, err := c.Agents(t.Context())
		lift()
		if got := must(t, odd, err)[0]; got.Status != "pondering" || got.Status.Rests() {
			t.Errorf("status that nobody knows: %q", got.Status)
		}
		defer srv.Inject(herdrtest.Fault{Error: &herdrtest.Error{Code: "server_unavailable", Message: "busy"}})()
		if _, err := c.Agents(t.Context()); herdr.Code(err) != "server_unavailable" {
			t.Errorf("refused: %v", err)
		}
	})
}

func TestAHerdrThatIsGoneFrozenOrNewIsKnownForIt(t *testing.T) {
	forEachProfile(t, func(t *testing.T, profile int) {
		srv, c := fake(t, profile, 20)
		ctx := t.Context()
		soldier := srv.Agent(herdrtest.Agent{Name: "soldier-a"})
		soldier.Working()
		epoch := func() herdr.Epoch {
			t.Helper()
			e, err := herdr.EpochOf(srv.Socket)
			return must(t, e, err)
		}
		first := epoch()
		before, err := c.Agents(ctx)
		must(t, before, err)

		srv.Freeze()
		if _, err := (&herdr.Client{Socket: srv.Socket, Deadline: 100 * time.Millisecond}).Ping(ctx); !errors.Is(err, herdr.ErrTimeout) {
			t.Errorf("frozen: %v", err)
		}
		srv.Thaw()
		if _, err := c.Ping(ctx); err != nil {
			t.Errorf("thawed: %v", err)
		}
		if epoch() != first {
			t.Error("a thaw is no new epoch")
		}

		srv.Stale()
		if _, err := c.Ping(ctx); !errors.Is(err, herdr.ErrUnreachable) {
			t.Errorf("stale socket: %v", err)
		}
		srv.Start()
		srv.Stop()
		if _, err := c.Ping(ctx); !errors.Is(err, herdr.ErrUnreachable) {
			t.Errorf("no socket: %v", err)
		}
		srv.Start()
		time.Sleep(20 * time.Millisecond) // the clock of some file systems is a coarse one
		second := epoch()
		if second == first {
			t.Error("a new start has the old epoch")
		}

		srv.Restart(herdrtest.Resumed)
		after, err := c.Agents(ctx)
		must(t, after, err)
		if epoch() == second {
			t.Error("a restart has the old epoch")
		}
		if len(after) != 1 || after[0].PaneID != before[0].PaneID || after[0].TerminalID == before[0].TerminalID {
			t.Errorf("before the restart %+v, after it %+v", before, after)
		}
	})
}
