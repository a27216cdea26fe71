package herdr

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// SocketPath is where herdr's API socket is to be looked for, by the variables of the environment that getenv knows:
// HERDR_SOCKET_PATH, which herdr sets in each of its panes; HERDR_SESSION, the name of a session; else the default
// session. That the file exists is not looked at.
//
// A process that outlives its pane should ask once and keep the answer: what it has inherited leads to the herdr that
// it was started in.
func SocketPath(getenv func(string) string) (string, error) {
	if path := getenv("HERDR_SOCKET_PATH"); path != "" {
		return filepath.Abs(path)
	}
	config := getenv("XDG_CONFIG_HOME") // on macOS too
	if !filepath.IsAbs(config) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("herdr socket: HOME is no absolute path")
		}
		config = filepath.Join(home, ".config")
	}
	session := getenv("HERDR_SESSION")
	if session == "" || session == "default" {
		return filepath.Join(config, "herdr", "herdr.sock"), nil
	}
	if !validSession(session) {
		return "", fmt.Errorf("herdr socket: HERDR_SESSION is no session's name: %q", session)
	}
	return filepath.Join(config, "herdr", "sessions", session, "herdr.sock"), nil
}

func validSession(name string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return len(name) <= 64 && name != "." && name != ".." && strings.Trim(name, allowed) == ""
}
