// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxAnswer bounds one answer. A series with its labels takes about 300 bytes, so this is some 100,000 series.
const maxAnswer = 32 << 20

// client speaks the one call of Prometheus' HTTP API that we need.
type client struct {
	base string
	http *http.Client
}

func newClient(base string) *client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = concurrent
	transport.ResponseHeaderTimeout = time.Minute
	return &client{
		base: strings.TrimSuffix(base, "/"),
		http: &http.Client{
			Transport: readOnly{transport},
			// A redirect would carry the bearer token to wherever the answer says.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// readOnly refuses every request that could change something (contract 20).
type readOnly struct{ next http.RoundTripper }

// RoundTrip passes GET on and refuses the rest.
func (r readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return nil, fmt.Errorf("%s refused: this client only reads", req.Method)
	}
	return r.next.RoundTrip(req)
}

// serverTime is Prometheus' own present, to the millisecond.
func (c *client) serverTime(ctx context.Context, token string) (time.Time, error) {
	body, err := c.get(ctx, token, url.Values{"query": {"time()"}})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask its time: %w", err)
	}
	now, err := decodeTime(body)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask its time: %w", err)
	}
	return now, nil
}

// query evaluates one expression at one time and gives the answer as it came.
func (c *client) query(ctx context.Context, token, expr string, at time.Time) ([]byte, error) {
	values := url.Values{"query": {expr}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	if deadline, ok := ctx.Deadline(); ok {
		// Prometheus stops too when we have stopped waiting.
		if left := time.Until(deadline); left > 0 {
			values.Set("timeout", strconv.FormatInt(max(1, left.Milliseconds()), 10)+"ms")
		}
	}
	return c.get(ctx, token, values)
}

func (c *client) get(ctx context.Context, token string, values url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/api/v1/query?"+values.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		// url.Error repeats the whole URL with the query; the cause is what a reader needs.
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("answer is longer than %d MiB", maxAnswer>>20)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, decodeError(body))
	}
	return body, nil
}
