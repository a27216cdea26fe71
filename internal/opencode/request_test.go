package opencode

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// raw is a server that answers each connection with these very bytes, and then hangs up.
func raw(t *testing.T, answer string, readFirst bool) *Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if readFirst {
				for r := bufio.NewReader(conn); ; {
					if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
			}
			io.WriteString(conn, answer)
			conn.Close()
		}
	}()
	c, err := New(Server{URL: "http://" + listener.Addr().String(), Version: "1.18.33"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnAnswerIsReadInEveryFormThatHTTPHas(t *testing.T) {
	const busy = `{"` + ses + `":{"type":"busy"}}`
	n := len(busy)
	for name, c := range map[string]struct {
		answer string
		err    error // nil: the session is busy
	}{
		"with its length":          {"HTTP/1.1 200 OK\r\nContent-Length: " + strconv.Itoa(n) + "\r\n\r\n" + busy, nil},
		"with bare line ends":      {"HTTP/1.1 200 OK\ncontent-length:" + strconv.Itoa(n) + "\n\n" + busy, nil},
		"without a reason":         {"HTTP/1.1 200\r\nContent-Length: " + strconv.Itoa(n) + "\r\n\r\n" + busy, nil},
		"up to the end":            {"HTTP/1.0 200 OK\r\n\r\n" + busy, nil},
		"after a word of patience": {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n" + busy, nil},
		"in chunks": {
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n" + busy[:5] + "\r\n" + strconv.FormatInt(int64(n-5), 16) + "\r\n" + busy[5:] + "\r\n0\r\nA: b\r\n\r\n", nil,
		},
		"cut in its body":       {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + busy, io.ErrUnexpectedEOF},
		"cut in a chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + busy, io.ErrUnexpectedEOF},
		"cut between chunks":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + busy[:5] + "\r\n", io.ErrUnexpectedEOF},
		"cut in its head":       {"HTTP/1.1 200 OK\r\nContent-Le", io.ErrUnexpectedEOF},
		"none":                  {"", io.ErrUnexpectedEOF},
		"of another protocol":   {"SSH-2.0-OpenSSH_9.6\r\n", errNotHTTP},
		"of a wrong status":     {"HTTP/1.1 20 OK\r\n\r\n", errNotHTTP},
		"of HTTP/2":             {"HTTP/2 200 OK\r\n\r\n" + busy, errNotHTTP},
		"of two lengths":        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", errNotHTTP},
		"of a negative length":  {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errNotHTTP},
		"compressed":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", errNotHTTP},
		"of a wrong chunk":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", errNotHTTP},
		"of an overlong chunk":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", errTooLong},
		"of an overlong length": {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", errTooLong},
		"with a long line":      {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 2*mostHead) + "\r\n\r\n", errTooLong},
		"with many lines":       {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", mostHead) + "\r\n", errTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := raw(t, c.answer, true).Busy(t.Context(), ses)
			if !errors.Is(err, c.err) || got != (c.err == nil) {
				t.Errorf("busy is %v, %v; want %v", got, err, c.err)
			}
		})
	}
}

func TestAnAnswerCountsThatComesBeforeTheRequestWasRead(t *testing.T) {
	c := raw(t, "HTTP/1.1 401 Unauthorized\r\n\r\n", false)
	if err := c.Prompt(t.Context(), ses, strings.Repeat("x", 8<<20)); err == nil {
		t.Error("it is taken for success")
	}
}

func TestAnAnswerWithoutAnEndIsNotWaitedForLonger(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
		}
	}()
	c, err := New(Server{URL: "http://" + listener.Addr().String(), Version: "2.0.17"})
	if err != nil {
		t.Fatal(err)
	}
	c.limit = 200 * time.Millisecond
	if _, err := c.Busy(t.Context(), ses); err == nil {
		t.Error("it is taken for an answer")
	}
	// What has a status was answered, whatever became of the rest.
	if err := c.Prompt(t.Context(), ses, "news"); !errors.Is(err, ErrAnswered) {
		t.Errorf("%v, want %v", err, ErrAnswered)
	}
}

func TestWhereLocalhostListensIsFound(t *testing.T) {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here")
	}
	f := start(t, "1.18.33")
	own := f.Config.Handler
	go (&http.Server{Handler: own}).Serve(listener)
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	c, err := New(Server{URL: "http://localhost:" + port, Version: "1.18.33", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prompt(t.Context(), ses, "news"); err != nil || len(f.said) != 1 {
		t.Errorf("%v; told %q", err, f.said)
	}
}
