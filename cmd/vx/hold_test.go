//go:build !windows

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"vx/hook"
	"vx/internal/daemon"
)

func TestTheHoldersSpellingIsReadWithoutTheGrammar(t *testing.T) {
	for _, c := range []struct {
		args string
		want hook.Holder
		ok   bool
	}{
		{"sentinel await --hold", hook.Holder{}, true},
		{"sentinel await --hold --harness pi --session s --transcript /t", hook.Holder{Harness: "pi", Session: "s", Transcript: "/t"}, true},
		{"sentinel await --hold --harness=opencode --session=ses_1", hook.Holder{Harness: "opencode", Session: "ses_1"}, true},
		{"sentinel await --hold --session=a=b", hook.Holder{Session: "a=b"}, true},
		{"sentinel await --hold --harness vim", hook.Holder{Harness: "vim"}, false},
		{"sentinel await --hold --harness", hook.Holder{}, false},
		{"sentinel await --hold --session --harness pi", hook.Holder{}, false},
		{"sentinel await --hold --help", hook.Holder{}, false},
		{"sentinel await --hold 7", hook.Holder{}, false},
		{"sentinel await", hook.Holder{}, false},
		{"sentinel drain --hold", hook.Holder{}, false},
		{"wake await --hold", hook.Holder{}, false},
	} {
		got, ok := holderOf(strings.Fields(c.args))
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.args, got, ok, c.want, c.ok)
		}
	}
}

func TestAClientHoldsADeliveryUntilItSaysWhatBecameOfIt(t *testing.T) {
	for _, spelling := range []string{"--hold --harness pi --session s1", "--harness=pi --session=s1 --hold"} {
		v := newInstalled(t)
		t.Cleanup(func() {
			if _, err := daemon.Stop(context.Background(), v.dir); err != nil && !errors.Is(err, daemon.ErrNone) {
				t.Error(err)
			}
		})
		if out, err := v.command("wake", "send", "--title", "news").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := v.command(append([]string{"sentinel", "await"}, strings.Fields(spelling)...)...)
		var complaints strings.Builder
		cmd.Stderr = &complaints
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		var told struct{ Token, Text string }
		if err == nil {
			err = json.Unmarshal([]byte(line), &told)
		}
		if err != nil || !strings.Contains(told.Text, ": news\n") {
			t.Errorf("%s: it printed %q: %v", spelling, line, err)
		}
		if _, err := in.Write([]byte("ack " + told.Token + "\n")); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v, stderr %q", spelling, err, complaints.String())
		}
		log, err := v.command("wake", "log", "--json").Output()
		if err != nil || !strings.Contains(string(log), `"proof":"acknowledged","harness":"pi","session":"s1"`) {
			t.Errorf("%s: %v\n%s", spelling, err, log)
		}
	}
}
