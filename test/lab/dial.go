// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Dial connects from inside a place. Addresses must be literal: names are not resolved there.
func (l *Lab) Dial(ctx context.Context, place, network, addr string) (net.Conn, error) {
	var c net.Conn
	err := l.Do(place, func() error {
		var err error
		c, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, addr)
		return err
	})
	return c, err
}

// Listen opens a listener inside a place, for a server that runs in this process.
func (l *Lab) Listen(ctx context.Context, place, network, addr string) (net.Listener, error) {
	var ln net.Listener
	err := l.Do(place, func() error {
		var err error
		ln, err = (&net.ListenConfig{}).Listen(ctx, network, addr)
		return err
	})
	return ln, err
}

// HTTPClient is a client for servers that listen inside a place, on its loopback too.
func (l *Lab) HTTPClient(place string) *http.Client {
	return &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return l.Dial(ctx, place, network, addr)
			},
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second,
		},
	}
}
