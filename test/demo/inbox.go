// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// inbox stands in for Slack: it takes what Alertmanager posts, so that the demo can show that people were told.
type inbox struct {
	url string

	mu     sync.Mutex
	titles []string
}

func openInbox(ctx context.Context, y yard) (*inbox, error) {
	b := &inbox{}
	l, err := y.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the stand-in for Slack: %w", err)
	}
	b.url = "http://" + l.Addr().String() + "/slack"
	s := &http.Server{Handler: b, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() { _ = s.Serve(l) }()
	return b, nil
}

// ServeHTTP takes one message.
func (b *inbox) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var message struct {
		Attachments []struct {
			Title string `json:"title"`
		} `json:"attachments"`
	}
	body, _ := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range message.Attachments {
		b.titles = append(b.titles, a.Title)
	}
	_, _ = io.WriteString(w, "ok")
}

// take returns what came since the last call.
func (b *inbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.titles
	b.titles = nil
	return t
}
