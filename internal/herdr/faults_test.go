package herdr

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// faulty is one of the errors that say what is wrong with herdr.
var faulty = []error{ErrUnreachable, ErrTimeout, ErrCut, ErrGarbage}

// is checks that err is exactly one of these, or none of them where want is nil.
func is(t *testing.T, err, want error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, fault := range faulty {
		if errors.Is(err, fault) != (fault == want) {
			t.Errorf("error %q: is %q = %v", err, fault, fault != want)
		}
	}
}

// Whatever comes instead of an answer is told apart, for a list, whose answer is read in its own way, and for the rest.
func TestEachFaultIsToldApart(t *testing.T) {
	pong := `{"id":"?","result":{"type":"pong","version":"v","protocol":20}}`
	list := `{"id":"?","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1"}]}}`
	for name, test := range map[string]struct {
		talk func(t *testing.T, conn net.Conn, request []byte, answer string)
		want error
	}{
		"closed at once": {func(*testing.T, net.Conn, []byte, string) {}, ErrCut},
		"half a line": {func(t *testing.T, conn net.Conn, request []byte, answer string) {
			conn.Write(reply(t, request, answer)[:40])
		}, ErrCut},
		"all but the end of the line": {func(t *testing.T, conn net.Conn, request []byte, answer string) {
			whole := reply(t, request, answer)
			conn.Write(whole[:len(whole)-1])
		}, ErrCut},
		"an empty line": {func(_ *testing.T, conn net.Conn, _ []byte, _ string) { conn.Write([]byte("\n")) }, ErrGarbage},
		"no JSON":       {func(_ *testing.T, conn net.Conn, _ []byte, _ string) { conn.Write([]byte("\x00\xff}{\n")) }, ErrGarbage},
		"other JSON":    {func(_ *testing.T, conn net.Conn, _ []byte, _ string) { conn.Write([]byte("[1,2]\n")) }, ErrGarbage},
		"a torn answer": {func(t *testing.T, conn net.Conn, request []byte, answer string) {
			whole := reply(t, request, answer)
			conn.Write(append(whole[:len(whole)-4], '\n'))
		}, ErrGarbage},
		"another's answer": {func(_ *testing.T, conn net.Conn, _ []byte, answer string) { conn.Write([]byte(answer + "\n")) }, ErrGarbage},
		"an id that is no string": {func(_ *testing.T, conn net.Conn, _ []byte, answer string) {
			conn.Write([]byte(strings.Replace(answer, `"?"`, "1", 1) + "\n"))
		}, ErrGarbage},
		"an answer of another type": {func(t *testing.T, conn net.Conn, request []byte, _ string) {
			conn.Write(reply(t, request, `{"id":"?","result":{"type":"ok"}}`))
		}, ErrGarbage},
		"a list of another type": {func(t *testing.T, conn net.Conn, request []byte, _ string) {
			conn.Write(reply(t, request, `{"id":"?","result":{"type":"pane_list","agents":[{"pane_id":"w1:p1"}]}}`))
		}, ErrGarbage},
		"neither result nor error": {func(t *testing.T, conn net.Conn, request []byte, _ string) {
			conn.Write(reply(t, request, `{"id":"?"}`))
		}, ErrGarbage},
		"more than a line may have": {func(_ *testing.T, conn net.Conn, _ []byte, _ string) {
			for chunk := make([]byte, 1<<20); ; {
				if _, err := conn.Write(chunk); err != nil {
					return
				}
			}
		}, ErrGarbage},
		"refused": {func(t *testing.T, conn net.Conn, request []byte, _ string) {
			conn.Write(reply(t, request, `{"id":"?","error":{"code":"server_unavailable","message":"stopping"}}`))
		}, nil},
		"refused unread": {func(_ *testing.T, conn net.Conn, _ []byte, _ string) {
			conn.Write([]byte(`{"id":"","error":{"code":"invalid_request","message":"unknown variant"}}` + "\n"))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(err error) {
				t.Helper()
				is(t, err, test.want)
				if (Code(err) != "") != (test.want == nil) {
					t.Errorf("code of %v is %q", err, Code(err))
				}
			}
			_, err := serve(t, func(conn net.Conn, request []byte) { test.talk(t, conn, request, pong) }).Ping(t.Context())
			check(err)
			_, err = serve(t, func(conn net.Conn, request []byte) { test.talk(t, conn, request, list) }).Agents(t.Context())
			check(err)
		})
	}
}

func TestAHerdrThatDoesNotAnswerIsATimeout(t *testing.T) {
	c := serve(t, func(conn net.Conn, _ []byte) { waitHangup(t, conn) })
	c.Deadline = 50 * time.Millisecond
	_, err := c.Ping(t.Context())
	is(t, err, ErrTimeout)

	c.Deadline = patient
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Ping(ctx)
	is(t, err, ErrTimeout)
}

func TestAnEndedContextEndsTheRequest(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(conn net.Conn, _ []byte) {
		cancel()
		waitHangup(t, conn)
	})
	_, err := c.Ping(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	is(t, err, nil)
	if _, err := c.Ping(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: error is %v", err)
	}
}

func TestWhatIsNoLiveSocketIsUnreachable(t *testing.T) {
	dir := shortDir(t)
	stale := filepath.Join(dir, "stale")
	l, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path string
		want error
	}{
		{filepath.Join(dir, "missing"), fs.ErrNotExist},
		{stale, unix.ECONNREFUSED},
		{file, ErrUnreachable},
		{filepath.Join(dir, strings.Repeat("x", 200)), ErrUnreachable},
		{"", ErrUnreachable},
	} {
		_, err := (&Client{Socket: test.path}).Agents(t.Context())
		is(t, err, ErrUnreachable)
		if !errors.Is(err, test.want) {
			t.Errorf("%q: error is %v", test.path, err)
		}
	}
}

// A frozen herdr accepts nobody, until its queue of connections is full and the system turns the next ones away.
func TestAFullQueueOfConnectionsIsATimeout(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	c := &Client{Socket: path, Deadline: 300 * time.Millisecond}
	var asking sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		asking.Go(func() { _, errs[i] = c.Ping(t.Context()) })
	}
	asking.Wait()
	full := 0
	for _, err := range errs {
		if runtime.GOOS == "darwin" && errors.Is(err, ErrUnreachable) {
			continue // macOS says the same of a full queue as of nobody
		}
		is(t, err, ErrTimeout)
		if strings.Contains(err.Error(), "queue") {
			full++
		}
	}
	if full == 0 && runtime.GOOS == "linux" {
		t.Error("the queue was never full")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = (&Client{Socket: path, Deadline: patient}).Ping(ctx)
	if runtime.GOOS == "linux" {
		is(t, err, ErrTimeout)
	}
}

func TestAnAnswerInPiecesOrWithMoreBehindItIsRead(t *testing.T) {
	c := serve(t, func(conn net.Conn, request []byte) {
		for _, b := range reply(t, request, `{"id":"?","result":{"type":"pong","version":"v","protocol":20}}`) {
			conn.Write([]byte{b})
		}
	})
	if pong, err := c.Ping(t.Context()); err != nil || pong.Protocol != 20 {
		t.Errorf("in pieces: %+v, %v", pong, err)
	}
	c = serve(t, func(conn net.Conn, request []byte) {
		conn.Write([]byte(string(reply(t, request, `{"id":"?","result":{"type":"pong","version":"v","protocol":20}}`)) + "{\"id\":\"x\"}\n"))
	})
	if pong, err := c.Ping(t.Context()); err != nil || pong.Protocol != 20 {
		t.Errorf("with more behind it: %+v, %v", pong, err)
	}
}

// The answer to a request that is refused unread may be there before the request was written.
func TestARefusalOfWhatWasNotReadArrives(t *testing.T) {
	path := filepath.Join(shortDir(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.Write([]byte(`{"id":"","error":{"code":"invalid_request","message":"too long"}}` + "\n"))
		conn.Close()
	}()
	_, err = (&Client{Socket: path, Deadline: patient}).Prompt(t.Context(), "w1:p1", strings.Repeat("x", maxRequest/2))
	if Code(err) != "invalid_request" && (runtime.GOOS == "linux" || !errors.Is(err, ErrCut)) {
		t.Errorf("error is %v", err) // other systems may drop the refusal with the connection
	}
}

func TestNothingIsLeftOpen(t *testing.T) {
	list := `{"id":"?","result":{"type":"agent_list","agents":[{"pane_id":"w1:p1"}]}}`
	good := answers(t, list)
	cut := serve(t, func(net.Conn, []byte) {})
	hung := serve(t, func(conn net.Conn, _ []byte) { waitHangup(t, conn) })
	hung.Deadline = time.Millisecond
	stream := answers(t, `{"id":"?","result":{"type":"subscription_started"}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	round := func() {
		good.Agents(ctx)
		cut.Agents(ctx)
		hung.Agents(ctx)
		(&Client{Socket: "/nonexistent"}).Ping(ctx)
		cut.Subscribe(ctx, nil)
		hung.Subscribe(ctx, nil)
		s, err := stream.Subscribe(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Next()
	}
	round()
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 50 {
		round()
	}
	for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		g, f := runtime.NumGoroutine(), openFiles(t)
		if g <= goroutines && f <= files {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d goroutines of %d, %d files of %d", g, goroutines, f, files)
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
