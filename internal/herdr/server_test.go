package herdr

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// patient is longer than anything here takes on a machine that is busy with other things.
const patient = 30 * time.Second

// schema is herdr's own, of protocol 20, by the kinds of lines in it.
var schema = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	f, err := os.Open("testdata/herdr-api.schema.json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("herdr.json", doc); err != nil {
		return nil, err
	}
	kinds := map[string]*jsonschema.Schema{}
	for _, kind := range []string{"request", "success_response", "error_response", "event", "subscription_event"} {
		if kinds[kind], err = c.Compile("herdr.json#/schemas/" + kind); err != nil {
			return nil, err
		}
	}
	return kinds, nil
})

// valid checks a line against the schema of its kind.
func valid(t *testing.T, kind string, line []byte) {
	t.Helper()
	if err := validate(t, kind, line); err != nil {
		t.Errorf("%s %s: %v", kind, line, err)
	}
}

func validate(t *testing.T, kind string, line []byte) error {
	t.Helper()
	kinds, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	return kinds[kind].Validate(value)
}

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vxh")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve is a client of a server that reads one line of each connection, checks it, and leaves the rest to talk. The
// connection is closed after that.
func serve(t *testing.T, talk func(conn net.Conn, request []byte)) *Client {
	t.Helper()
	socket := filepath.Join(shortDir(t), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var talks sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		talks.Wait()
	})
	talks.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			talks.Go(func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(patient))
				line, err := bufio.NewReader(conn).ReadBytes('\n')
				if err != nil {
					return // a client that gave up at once
				}
				valid(t, "request", line)
				talk(conn, line)
			})
		}
	})
	return &Client{Socket: socket, Deadline: patient}
}

// answers is a client whose every request is answered with the line; an id "?" in it becomes that of the request.
func answers(t *testing.T, line string) *Client {
	t.Helper()
	return serve(t, func(conn net.Conn, request []byte) { conn.Write(reply(t, request, line)) })
}

func reply(t *testing.T, request []byte, line string) []byte {
	var r struct{ ID string }
	if err := json.Unmarshal(request, &r); err != nil {
		t.Error(err)
	}
	return []byte(strings.Replace(line, `"id":"?"`, `"id":"`+r.ID+`"`, 1) + "\n")
}

// waitHangup waits until the other side has closed the connection, and is what it wrote before.
func waitHangup(t *testing.T, conn net.Conn) (written []byte) {
	buf := make([]byte, 64)
	for {
		n, err := conn.Read(buf)
		written = append(written, buf[:n]...)
		if err != nil {
			if os.IsTimeout(err) {
				t.Error("the client did not hang up")
			}
			return written
		}
	}
}
