package herdr

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vx/internal/herdr/herdrtest/schema"
)

// patient is longer than anything here takes on a machine that is busy with other things.
const patient = 30 * time.Second

// valid checks a line against herdr's own schema.
func valid(t *testing.T, kind string, line []byte) {
	t.Helper()
	if err := schema.Validate(kind, line); err != nil {
		t.Errorf("%s %s: %v", kind, line, err)
	}
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
