// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// maxAnswer bounds what the tool reads from a server.
const maxAnswer = 64 << 20

// client speaks to one actuator.
type client struct {
	server    string
	tokenFile string
	http      *http.Client
}

func newClient(server, tokenFile string) (*client, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, usagef("--server %q: want http://host:port or https://host:port", server)
	}
	return &client{
		server: strings.TrimSuffix(server, "/"), tokenFile: tokenFile,
		http: &http.Client{
			Timeout: 30 * time.Second,
			// A redirect would carry the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// get reads one resource into out; raw, if wanted, gets the answer as it came.
func (c *client) get(ctx context.Context, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// do sends one request; in and out may be nil.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+"/api/v1alpha1/"+path, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.server, err)
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.tokenFile != "" {
		token, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return fmt.Errorf("read token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return &exitError{exitUnreachable, fmt.Errorf("no answer from the actuator at %s: %w", c.server, err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return &exitError{exitUnreachable, fmt.Errorf("read answer of %s: %w", c.server, err)}
	}
	if len(answer) > maxAnswer {
		return fmt.Errorf("answer of %s is longer than %d MiB", c.server, maxAnswer>>20)
	}
	if resp.StatusCode/100 != 2 {
		return refusal(c.server, resp.StatusCode, answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("answer of %s is not what an actuator says: %w", c.server, err)
	}
	return nil
}

// refusal turns an answer that is not a success into an error with its exit code.
func refusal(server string, status int, body []byte) error {
	var p struct {
		Detail string `json:"detail"`
		Errors []struct {
			Message  string `json:"message"`
			Location string `json:"location"`
		} `json:"errors"`
	}
	reason := http.StatusText(status)
	if json.Unmarshal(body, &p) == nil && p.Detail != "" {
		reason = p.Detail
		for _, e := range p.Errors {
			reason += "; " + strings.TrimSpace(e.Location+" "+e.Message)
		}
	}
	code := exitFailed
	switch status {
	case http.StatusNotFound:
		code = exitNotFound
	case http.StatusConflict, http.StatusForbidden:
		code = exitRefused
	case http.StatusUnauthorized:
		code, reason = exitRefused, reason+" (see --token-file)"
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		code = exitUnreachable
	}
	return &exitError{code, fmt.Errorf("%s: %s (status %d)", server, reason, status)}
}
