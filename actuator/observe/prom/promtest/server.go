// SPDX-License-Identifier: Apache-2.0

package promtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trainyard/trainyard/actuator/observe/prom"
)

// Server is the fake Prometheus.
type Server struct {
	URL string

	mu    sync.Mutex
	yard  *Yard
	fault http.HandlerFunc
	asked map[string]prom.Query
	now   func() time.Time
	last  time.Time

	answers    map[prom.Query][]prom.Sample
	answeredAt string
}

// Serve starts a server for observers with this configuration (its URL is filled in by Config). It ends with the test.
func Serve(t testing.TB, yard *Yard, cfg prom.Config) *Server {
	s := &Server{yard: yard, asked: map[string]prom.Query{}, now: time.Now}
	for q, expr := range prom.Expressions(cfg) {
		s.asked[expr] = q
	}
	srv := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Change lets the test change the yard between queries.
func (s *Server) Change(f func(*Yard)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); !s.last.IsZero() { // what was, counts at the old pace
		s.yard.Advance(now.Sub(s.last))
		s.last = now
	}
	f(s.yard)
	s.answeredAt = ""
}

// Fail makes every request go to h; nil heals the server.
func (s *Server) Fail(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = h
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		s.fault(w, r)
		return
	}
	if r.Method != http.MethodGet || r.URL.Path != "/api/v1/query" {
		http.Error(w, "this fake answers GET /api/v1/query only", http.StatusNotFound)
		return
	}
	expr := r.FormValue("query")
	if expr == "time()" {
		now := s.now().Truncate(time.Millisecond)
		if !s.last.IsZero() && now.After(s.last) {
			s.yard.Advance(now.Sub(s.last))
		}
		s.last = now
		reply(w, "scalar", point(now, float64(now.UnixMilli())/1000))
		return
	}
	q, ok := s.asked[expr]
	if !ok {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"status":"error","errorType":"execution","error":"the fake does not know %q"}`, expr)
		return
	}
	seconds, err := strconv.ParseFloat(r.FormValue("time"), 64)
	if err != nil {
		http.Error(w, "no time", http.StatusBadRequest)
		return
	}
	type series struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	if at := r.FormValue("time"); at != s.answeredAt { // a snapshot asks for one time only
		s.answers, s.answeredAt = s.yard.Vectors(), at
	}
	at := time.UnixMilli(int64(seconds*1000 + 0.5))
	if strings.HasSuffix(expr, "]") { // counters: the value is their rate
		type counter struct {
			Metric map[string]string `json:"metric"`
			Values [2][2]any         `json:"values"`
		}
		out := []counter{}
		for _, x := range s.answers[q] {
			out = append(out, counter{x.Labels, [2][2]any{point(at.Add(-1500*time.Millisecond), 0), point(at.Add(-500*time.Millisecond), x.Value)}})
		}
		reply(w, "matrix", out)
		return
	}
	out := []series{}
	for _, x := range s.answers[q] {
		out = append(out, series{x.Labels, point(at, x.Value)})
	}
	reply(w, "vector", out)
}

func point(t time.Time, v float64) [2]any {
	return [2]any{json.Number(strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)), strconv.FormatFloat(v, 'g', -1, 64)}
}

func reply(w http.ResponseWriter, kind string, result any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}})
}

// ServeHandler serves one handler until the test ends and returns its URL; for faults that a Server cannot have
// while it holds its lock.
func ServeHandler(t testing.TB, h http.HandlerFunc) string {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}
