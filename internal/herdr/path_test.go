package herdr

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheSocketIsLookedForInTheDocumentedOrder(t *testing.T) {
	for _, test := range []struct {
		env  map[string]string
		want string // "" for an error
	}{
		{map[string]string{"HERDR_SOCKET_PATH": "/run/h.sock", "HERDR_SESSION": "s", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/run/h.sock"},
		{map[string]string{"HERDR_SOCKET_PATH": "/run/h.sock"}, "/run/h.sock"},
		{map[string]string{"HERDR_SESSION": "work-1.a_B", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/herdr/sessions/work-1.a_B/herdr.sock"},
		{map[string]string{"HERDR_SESSION": "s", "HOME": "/h"}, "/h/.config/herdr/sessions/s/herdr.sock"},
		{map[string]string{"HERDR_SESSION": "default", "HOME": "/h"}, "/h/.config/herdr/herdr.sock"},
		{map[string]string{"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/herdr/herdr.sock"},
		{map[string]string{"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/herdr/herdr.sock"},
		{map[string]string{"HOME": "/h"}, "/h/.config/herdr/herdr.sock"},
		{map[string]string{"HOME": "h"}, ""},
		{nil, ""},
		{map[string]string{"HERDR_SESSION": "../s", "HOME": "/h"}, ""},
		{map[string]string{"HERDR_SESSION": "a/b", "HOME": "/h"}, ""},
		{map[string]string{"HERDR_SESSION": "..", "HOME": "/h"}, ""},
		{map[string]string{"HERDR_SESSION": strings.Repeat("s", 65), "HOME": "/h"}, ""},
		{map[string]string{"HERDR_SESSION": strings.Repeat("s", 64), "HOME": "/h"}, "/h/.config/herdr/sessions/" + strings.Repeat("s", 64) + "/herdr.sock"},
	} {
		got, err := SocketPath(func(name string) string { return test.env[name] })
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%v: %q, %v", test.env, got, err)
		}
	}
	t.Chdir(shortDir(t))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := SocketPath(func(name string) string { return map[string]string{"HERDR_SOCKET_PATH": "h.sock"}[name] })
	if err != nil || got != filepath.Join(here, "h.sock") {
		t.Errorf("relative: %q, %v", got, err)
	}
}

func TestEachStartOfHerdrIsAnEpochOfItsOwn(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	if e, err := EpochOf(path); !errors.Is(err, fs.ErrNotExist) || e != (Epoch{}) {
		t.Errorf("no socket: %v, %v", e, err)
	}
	seen := map[Epoch]bool{}
	for range 5 {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		first, err := EpochOf(path)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if again, err := EpochOf(path); err != nil || again != first {
			t.Errorf("a connection changes the epoch from %v to %v, %v", first, again, err)
		}
		if seen[first] {
			t.Errorf("epoch %v twice", first)
		}
		seen[first] = true
		l.Close()
		time.Sleep(20 * time.Millisecond) // the clock of some file systems is a coarse one
	}
}
