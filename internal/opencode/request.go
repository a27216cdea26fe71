package opencode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
)

const (
	// most bounds an answer: a page of messages carries the output of tools, each of at most some 50 KB.
	most = 16 << 20
	// mostHead bounds what stands before it.
	mostHead = 64 << 10
)

var (
	// errTooLong says that there is more of an answer than anybody would read.
	errTooLong = errors.New("answer is too long")
	// errNotHTTP says that something else speaks there.
	errNotHTTP = errors.New("answer is no HTTP")
)

// The statuses that are told apart.
const (
	statusOK             = 200
	statusNoContent      = 204
	statusUnauthorized   = 401
	statusForbidden      = 403
	statusNotFound       = 404
	statusRequestTimeout = 408
)

// post sends JSON and returns the answer's status and what came of the rest. Its errors are ErrNotSent or ErrUnclear: what was never on a
// connection cannot have been taken.
func (c *Client) post(ctx context.Context, path string, body any) (int, []byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	status, answer, connected, err := c.do(ctx, "POST", path, nil, data)
	switch {
	case status != 0:
		return status, answer, nil
	case connected:
		return 0, nil, fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	return 0, nil, fmt.Errorf("%w: %w", ErrNotSent, err)
}

// get returns the whole answer to a question.
func (c *Client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	status, data, _, err := c.do(ctx, "GET", path, query, nil)
	if err != nil {
		return nil, err
	}
	if status != statusOK {
		return nil, errors.New(reason(status))
	}
	return data, nil
}

// do makes one request, on a connection of its own: one that is kept may be closed by the other side just when it is used
// again. A status other than 0 is the server's, whatever the error says of the rest.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte) (status int, data []byte, connected bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	conn, stop, err := dial(ctx, c.addrs)
	if err != nil {
		return 0, nil, false, err
	}
	defer conn.Close()
	defer stop()
	at := url.URL{Path: path, RawQuery: query.Encode()}
	_, failed := conn.Write(c.request(method, at.RequestURI(), body))
	// One that refuses may close before it has read everything, with its answer already on the way.
	status, data, err = readAnswer(bufio.NewReaderSize(conn, mostHead))
	if status == 0 && failed != nil {
		err = failed
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return status, data, true, err
}

// request is all that is written.
func (c *Client) request(method, target string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: vx\r\nAccept: application/json\r\nConnection: close\r\n", method, target, c.host)
	if c.password != "" {
		fmt.Fprintf(&b, "Authorization: Basic %s\r\n", base64.StdEncoding.EncodeToString([]byte(c.user+":"+c.password)))
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// readAnswer reads an answer to its end, where it says itself that it is over.
func readAnswer(r *bufio.Reader) (status int, body []byte, err error) {
	var h head
	for {
		if h, err = readHead(r); err != nil {
			return 0, nil, err
		}
		if h.status >= 200 {
			break // what comes before is no answer yet
		}
	}
	switch {
	case h.status == statusNoContent, h.status == 304:
		return h.status, nil, nil
	case h.chunked:
		body, err = readChunks(r)
	case h.length > most:
		err = errTooLong
	case h.length >= 0:
		body = make([]byte, h.length)
		var n int
		n, err = io.ReadFull(r, body)
		body = body[:n]
	default:
		body, err = io.ReadAll(io.LimitReader(r, most+1))
		if err == nil && len(body) > most {
			err = errTooLong
		}
	}
	return h.status, body, err
}

// head is what is of use of an answer's first lines.
type head struct {
	status  int
	length  int64 // -1: not said
	chunked bool
}

func readHead(r *bufio.Reader) (head, error) {
	h := head{length: -1}
	line, err := readLine(r)
	if err != nil {
		return h, err
	}
	// HTTP/1.1 204 No Content
	version, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	if h.status, err = strconv.Atoi(code); err != nil || len(code) != 3 || h.status < 100 || !strings.HasPrefix(version, "HTTP/1.") {
		return h, errNotHTTP
	}
	for n := len(line); ; n += len(line) {
		if line, err = readLine(r); err != nil || line == "" {
			return h, err
		}
		if n > mostHead {
			return h, errTooLong
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "transfer-encoding":
			if !strings.EqualFold(value, "chunked") {
				return h, errNotHTTP // nothing else was asked for
			}
			h.chunked = true
		case "content-length":
			n, err := strconv.ParseUint(value, 10, 62)
			if err != nil || h.length >= 0 && h.length != int64(n) {
				return h, errNotHTTP
			}
			h.length = int64(n)
		}
	}
}

// readChunks reads a body that comes in pieces, each with its length before it.
func readChunks(r *bufio.Reader) ([]byte, error) {
	var body []byte
	for {
		line, err := readLine(r)
		if err != nil {
			return body, err
		}
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 62)
		switch {
		case err != nil:
			return body, errNotHTTP
		case n == 0:
			return body, nil // what may follow says nothing of it
		case n > uint64(most-len(body)):
			return body, errTooLong
		}
		at := len(body)
		body = append(body, make([]byte, n)...)
		if _, err := io.ReadFull(r, body[at:]); err != nil {
			return body[:at], err
		}
		if line, err := readLine(r); err != nil || line != "" {
			return body, errors.Join(err, errNotHTTP)
		}
	}
}

// readLine reads a line without its end. There is one, or it is no line.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errTooLong
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return strings.TrimRight(string(line), "\r\n"), err
}
