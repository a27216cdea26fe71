package opencode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// most bounds an answer: a page of messages carries the output of tools, each of at most some 50 KB.
const most = 16 << 20

// errTooLong says that there is more of an answer than anybody would read.
var errTooLong = errors.New("answer is too long")

// post sends JSON and returns the answer's status and what came of the rest. Its errors are ErrNotSent or ErrUnclear: what was never on a
// connection cannot have been taken.
func (c *Client) post(ctx context.Context, path string, body any) (int, []byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	status, answer, err := c.do(ctx, http.MethodPost, path, nil, data)
	switch {
	case status != 0:
		return status, answer, nil
	case connected.Load():
		return 0, nil, fmt.Errorf("%w: %w", ErrUnclear, err)
	}
	return 0, nil, fmt.Errorf("%w: %w", ErrNotSent, err)
}

// get returns the whole answer to a question.
func (c *Client) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	status, data, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, errors.New(reason(status))
	}
	return data, nil
}

// do makes one request. A status other than 0 is the server's, whatever the error says of the rest.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	at := *c.base
	at.Path, at.RawQuery = path, query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	// Nobody else repeats it: whether it may be sent twice is not for the transport to decide.
	req.GetBody = nil
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.user != nil {
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && len(data) > most {
		err = errTooLong
	}
	return res.StatusCode, data, err
}
