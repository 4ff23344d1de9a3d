// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"compress/gzip"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/trainyard/trainyard/exporter/source"
)

// Handler serves the newest snapshot that it was given: /metrics, a page for people at / and /-/healthy.
type Handler struct {
	title string
	page  atomic.Pointer[page]
	zip   *gzip.Writer // of Publish alone
}

// page is one snapshot, rendered.
type page struct {
	text, zipped []byte
	snapshot     *source.Snapshot
}

// NewHandler makes a handler without a snapshot; title heads the page for people.
func NewHandler(title string) *Handler {
	zip, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	h := &Handler{title: title, zip: zip}
	h.page.Store(&page{snapshot: &source.Snapshot{}})
	return h
}

// Publish renders a snapshot. It is for one goroutine at a time: give it to Set.OnPublish.
func (h *Handler) Publish(s *source.Snapshot) {
	text := renderSorted(s.Samples)
	var zipped bytes.Buffer
	zipped.Grow(len(text) / 8)
	h.zip.Reset(&zipped)
	_, _ = h.zip.Write(text) // a Buffer never fails
	_ = h.zip.Close()
	h.page.Store(&page{text: text, zipped: zipped.Bytes(), snapshot: s})
}

// Routes returns the handler of all paths. Only GET and HEAD are answered, and neither changes anything.
func (h *Handler) Routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", h.metrics)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("healthy\n"))
	})
	mux.HandleFunc("GET /{$}", h.landing)
	return mux
}

func (h *Handler) metrics(w http.ResponseWriter, r *http.Request) {
	p := h.page.Load()
	body := p.text
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header.Get("Accept-Encoding")) && len(p.zipped) > 0 {
		body = p.zipped
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // whoever hung up does not want to hear of it
}

// acceptsGzip reads Accept-Encoding as far as scrapers use it; "gzip;q=0" is a refusal.
func acceptsGzip(header string) bool {
	for _, part := range strings.Split(header, ",") {
		coding, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(coding) == "gzip" {
			q = strings.TrimPrefix(strings.TrimSpace(q), "q=")
			return q == "" || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

func (h *Handler) landing(w http.ResponseWriter, _ *http.Request) {
	s := h.page.Load().snapshot
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = landingPage.Execute(w, struct {
		Title string
		*source.Snapshot
		Now time.Time
	}{h.title, s, time.Now()})
}

var landingPage = template.Must(template.New("landing").Funcs(template.FuncMap{
	"ago": func(now, then time.Time) string {
		if then.IsZero() {
			return "never"
		}
		return now.Sub(then).Round(time.Millisecond).String() + " ago"
	},
	"state": func(s source.Status) string {
		switch {
		case !s.Read:
			return "not read yet"
		case s.Stuck:
			return "stuck"
		case s.Absent:
			return "absent on this machine"
		case s.Success:
			return "ok"
		}
		return "fails"
	},
}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title>
<style>body{font:16px system-ui;margin:2rem;max-width:70rem}td,th{padding:.2rem .8rem;text-align:left;vertical-align:top}</style></head>
<body><h1>{{.Title}}</h1>
<p><a href="metrics">metrics</a>: {{len .Samples}} samples{{if .Duplicates}}, {{.Duplicates}} dropped because an earlier one had the same labels{{end}}.</p>
<table><tr><th>source</th><th>state</th><th>every</th><th>took</th><th>last success</th><th>samples</th><th>error</th></tr>
{{range .Sources}}<tr><td>{{.Name}}</td><td>{{state .}}</td><td>{{.Interval}}</td><td>{{.Duration}}</td><td>{{ago $.Now .LastSuccess}}</td><td>{{.Samples}}</td><td>{{with .Err}}{{.}}{{end}}</td></tr>
{{end}}</table></body></html>
`))
