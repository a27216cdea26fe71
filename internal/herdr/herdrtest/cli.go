package herdrtest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Main is the command `herdr`, as testscript.Main and its like want it. It has the commands that herdr has since 0.7.5, and none
// that were removed. It speaks the protocol of its server, or that in HERDRTEST_PROTOCOL: then it refuses a server of another
// one, as herdr does.
func Main() { os.Exit(CLI(os.Args[1:], os.Getenv, os.Stdout, os.Stderr)) }

// RunAsCLI makes a test binary that was started as `herdr` be that command. It is for the first line of TestMain.
func RunAsCLI() {
	if filepath.Base(os.Args[0]) == "herdr" {
		Main()
	}
}

// CommandDir is a directory for PATH with a `herdr` in it, which is this test binary: TestMain has to call RunAsCLI. Panes that are
// made from then on find it in HERDR_BIN_PATH too.
func (s *Server) CommandDir() string {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatalf("herdrtest: %v", err)
	}
	dir := shortDir(s.t)
	if err := os.Symlink(exe, filepath.Join(dir, "herdr")); err != nil {
		s.t.Fatalf("herdrtest: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cli = dir
	return dir
}

// cli is one run of the command.
type cli struct {
	getenv  func(string) string
	out     io.Writer
	err     io.Writer
	session string
	agreed  bool // the server's protocol has been asked for
}

// usageError is plain text on stderr, and exit status 2.
type usageError string

func (e usageError) Error() string { return string(e) }

// CLI runs the command with these arguments and is its exit status: 0 with the answer on stdout, 1 with an error as JSON on
// stderr, 2 with usage as text on stderr.
func CLI(args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	c := &cli{getenv: getenv, out: stdout, err: stderr}
	if len(args) >= 2 && args[0] == "--session" {
		c.session, args = args[1], args[2:]
	}
	err := c.run(args)
	var usage usageError
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, usage)
		return 2
	case errors.As(err, &e):
		json.NewEncoder(stderr).Encode(map[string]any{"id": "cli", "error": e})
		return 1
	}
	fmt.Fprintln(stderr, "Error:", err)
	return 1
}

func (c *cli) run(args []string) error {
	if len(args) == 0 {
		return usageError("usage: herdr <command>")
	}
	name := args[0]
	switch name {
	case "status":
		return c.status(args[1:])
	case "session":
		return c.sessions(args[1:])
	case "agent", "pane", "api":
	default:
		return usageError("unknown command: " + name)
	}
	if len(args) < 2 {
		return usageError("usage: herdr " + name + " <command>")
	}
	cmd := commands()[name+" "+args[1]]
	if cmd == nil {
		return usageError("unknown " + name + " command: " + args[1])
	}
	given, err := cmd.parse(args[2:])
	if err != nil {
		return err
	}
	return cmd.do(c, given)
}

// socket is the server's: of --session, HERDR_SOCKET_PATH, HERDR_SESSION, or the default, in this order.
func (c *cli) socket() string {
	named := c.session
	if named == "" {
		if path := c.getenv("HERDR_SOCKET_PATH"); path != "" {
			return path
		}
		named = c.getenv("HERDR_SESSION")
	}
	config := c.getenv("XDG_CONFIG_HOME")
	if config == "" {
		config = filepath.Join(c.getenv("HOME"), ".config")
	}
	if named == "" || named == "default" {
		return filepath.Join(config, "herdr", "herdr.sock")
	}
	return filepath.Join(config, "herdr", "sessions", named, "herdr.sock")
}

// call is one request, before the first of which the server is asked for its protocol.
func (c *cli) call(method string, params map[string]any) (line string, result map[string]any, err error) {
	if !c.agreed {
		if err := c.agree(); err != nil {
			return "", nil, err
		}
	}
	return c.ask(method, params)
}

// ask is one request on a connection of its own: the answer as it came, and its result.
func (c *cli) ask(method string, params map[string]any) (line string, result map[string]any, err error) {
	conn, err := net.Dial("unix", c.socket())
	if err != nil {
		return "", nil, errorf("server_not_running", "no herdr server is running at %s", c.socket())
	}
	defer conn.Close()
	request, err := json.Marshal(map[string]any{"id": "cli", "method": method, "params": params})
	if err != nil {
		return "", nil, err
	}
	if _, err := conn.Write(append(request, '\n')); err != nil {
		return "", nil, err
	}
	line, err = bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("read from %s: %w", c.socket(), err)
	}
	var answer struct {
		Result map[string]any
		Error  *Error
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		return "", nil, err
	}
	if answer.Error != nil {
		return "", nil, answer.Error
	}
	return line, answer.Result, nil
}

func (c *cli) agree() error {
	_, pong, err := c.ask("ping", map[string]any{})
	if err != nil {
		return err
	}
	if own := c.getenv("HERDRTEST_PROTOCOL"); own != "" && own != fmt.Sprint(pong["protocol"]) {
		return errorf("protocol_mismatch", "client protocol %s does not match server protocol %v; restart the server", own, pong["protocol"])
	}
	c.agreed = true
	return nil
}

// status never fails: a server that is not there is an answer.
func (c *cli) status(args []string) error {
	own := c.getenv("HERDRTEST_PROTOCOL")
	server := map[string]any{"status": "not_running", "running": false, "socket": c.socket()}
	_, pong, err := c.ask("ping", map[string]any{})
	if err == nil {
		compatible := own == "" || own == fmt.Sprint(pong["protocol"])
		server = map[string]any{
			"status": "running", "running": true, "version": pong["version"], "protocol": pong["protocol"],
			"capabilities": pong["capabilities"], "compatible": compatible, "socket": c.socket(), "restart_needed": !compatible,
		}
	}
	all := map[string]any{"server": server, "client": map[string]any{"protocol": own, "channel": "stable", "session": c.session}, "update": nil}
	if len(args) > 0 && (args[0] == "server" || args[0] == "client") {
		all, args = all[args[0]].(map[string]any), args[1:]
	}
	if slices.Equal(args, []string{"--json"}) {
		return json.NewEncoder(c.out).Encode(all)
	}
	fmt.Fprintf(c.out, "server: %v\n", server["status"])
	return nil
}

func (c *cli) sessions(args []string) error {
	if len(args) == 0 || args[0] != "list" {
		return usageError("usage: herdr session list [--json]")
	}
	_, _, err := c.ask("ping", map[string]any{})
	list := []map[string]any{{"name": "default", "running": err == nil, "socket_path": c.socket()}}
	if len(args) > 1 && args[1] == "--json" {
		return json.NewEncoder(c.out).Encode(map[string]any{"sessions": list})
	}
	fmt.Fprintf(c.out, "default running=%v %s\n", err == nil, c.socket())
	return nil
}

// printed passes an answer on as it came.
func (c *cli) printed(method string, params map[string]any) error {
	line, _, err := c.call(method, params)
	if err != nil {
		return err
	}
	_, err = io.WriteString(c.out, line)
	return err
}

// silent makes a request whose success says nothing.
func (c *cli) silent(method string, params map[string]any) error {
	_, _, err := c.call(method, params)
	return err
}

// given are the arguments of a command, taken apart.
type given struct {
	words []string            // positional
	flags map[string][]string // without dashes; a switch is there with an empty value
	rest  []string            // after --
}

func (g given) flag(name string) string {
	if v := g.flags[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

func (g given) has(name string) bool { return len(g.flags[name]) > 0 }

// number is a flag's value, if it is given. As in herdr a bad one is no usage error.
func (g given) number(params map[string]any, flag, name string) error {
	if !g.has(flag) {
		return nil
	}
	n, err := strconv.ParseUint(g.flag(flag), 10, 63)
	if err != nil {
		return fmt.Errorf("invalid --%s: %w", flag, err)
	}
	params[name] = n
	return nil
}

// command is one of `herdr agent ...` and its like.
type command struct {
	use      string
	least    int      // positional arguments
	most     int      // -1 is any number
	values   []string // flags with a value
	switches []string
	do       func(*cli, given) error
}

// parse takes arguments apart, or says how the command is used.
func (cmd *command) parse(args []string) (given, error) {
	g := given{flags: map[string][]string{}}
	usage := usageError("usage: herdr " + cmd.use)
	for i := 0; i < len(args); i++ {
		name, dashed := strings.CutPrefix(args[i], "--")
		switch {
		case dashed && name == "":
			g.rest, i = args[i+1:], len(args)
		case !dashed:
			g.words = append(g.words, args[i])
		case slices.Contains(cmd.switches, name):
			g.flags[name] = append(g.flags[name], "")
		case slices.Contains(cmd.values, name) && i+1 < len(args):
			i++
			g.flags[name] = append(g.flags[name], args[i])
		default:
			return g, usage
		}
	}
	if len(g.words) < cmd.least || cmd.most >= 0 && len(g.words) > cmd.most {
		return g, usage
	}
	return g, nil
}
