// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the HTTP server. A webhook body is bounded by intake itself, everything else by maxBody.
const (
	maxBody        = 64 << 10 // of a request to the REST interface in any case
	maxWord        = 4 << 10  // of a word such as approve or stop, which is refused with 413
	readHeaderTime = 5 * time.Second
	readTime       = 15 * time.Second
	writeTime      = 30 * time.Second
	idleTime       = 2 * time.Minute
	maxHeader      = 32 << 10
	maxConnections = 256
)

// Server listens and serves one handler.
type Server struct {
	http     *http.Server
	listener net.Listener
	tls      bool
	log      *slog.Logger
}

// Listen opens the port, so that an address in use is an error at start and not a log line later. Certificate and key
// are read at once, to find faults now, and again for each handshake, so that renewal needs no restart.
func Listen(listen, certFile, keyFile string, h http.Handler, log *slog.Logger) (*Server, error) {
	s := &Server{tls: certFile != "", log: log, http: &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	if s.tls {
		load := func() (*tls.Certificate, error) {
			c, err := tls.LoadX509KeyPair(certFile, keyFile)
			if err != nil {
				return nil, fmt.Errorf("load TLS certificate: %w", err)
			}
			return &c, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		s.http.TLSConfig = &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() },
		}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", listen, err)
	}
	s.listener = &limited{Listener: l, slots: make(chan struct{}, maxConnections)}
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve serves until Shutdown; it returns nil after it.
func (s *Server) Serve() error {
	var err error
	if s.tls {
		err = s.http.ServeTLS(s.listener, "", "")
	} else {
		err = s.http.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve on %s: %w", s.Addr(), err)
}

// Shutdown lets requests in flight finish until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		_ = s.http.Close() // the rest is cut off
		return fmt.Errorf("stop serving on %s: %w", s.Addr(), err)
	}
	return nil
}

// limited bounds the connections that are open at once, so that a crowd cannot take all file descriptors from the
// journal.
type limited struct {
	net.Listener
	slots chan struct{}
}

// Accept waits for a free slot first.
func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// slotConn gives its slot back when it is closed, once.
type slotConn struct {
	net.Conn
	free func()
}

// Close closes the connection and frees its slot.
func (c *slotConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
