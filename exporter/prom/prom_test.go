// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/trainyard/trainyard/exporter/source"
)

func TestRenderByHand(t *testing.T) {
	got := string(Render([]source.Sample{
		source.New("trainyard_switch_up", 1, "lab", "l2"),
		source.New("node_netstat_Tcp_OutRsts", 9, "n1"),
		source.New("trainyard_switch_up", 0, "lab", "l\"1\n\\\xff"),
		source.New("trainyard_switch_up", 7, "lab", "l2"), // a duplicate: the first one stays
		source.New("trainyard_actuator_routes_desired", 4),
		source.New("trainyard_forecast_error_ratio", 0.25),
	}))
	want := `# HELP node_netstat_Tcp_OutRsts TCP resets sent.
# TYPE node_netstat_Tcp_OutRsts untyped
node_netstat_Tcp_OutRsts{node="n1"} 9
# HELP trainyard_actuator_routes_desired Routes in the table of desired state.
# TYPE trainyard_actuator_routes_desired gauge
trainyard_actuator_routes_desired 4
# HELP trainyard_forecast_error_ratio Measured gain over forecast gain, minus one, of verified incidents.
# TYPE trainyard_forecast_error_ratio histogram
trainyard_forecast_error_ratio 0.25
# HELP trainyard_switch_up 1 if the switch's SNMP agent answered the last poll, else 0.
# TYPE trainyard_switch_up gauge
trainyard_switch_up{fabric="lab",switch="l\"1\n\\�"} 0
trainyard_switch_up{fabric="lab",switch="l2"} 1
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestValues(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1.5: "1.5", -1: "-1", 3e9: "3000000000", 1 << 60: "1.152921504606847e+18",
		math.Inf(1): "+Inf", math.Inf(-1): "-Inf", 1e-9: "1e-09", 0.1: "0.1",
	} {
		if got := string(appendValue(nil, v)); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	if got := string(appendValue(nil, math.NaN())); got != "NaN" {
		t.Errorf("NaN is written %s", got)
	}
}

// What we render is read back by Prometheus' own parser.
func TestRenderIsReadByPrometheus(t *testing.T) {
	text := Render([]source.Sample{
		source.New("trainyard_switch_up", 1, "lab", "l\"2\n\\"),
		source.New("trainyard_job_steps_total", 12, "a", "g", "0", "n1"),
		source.New("node_vmstat_compact_stall", 5, "n1"),
	})
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != 3 || families["trainyard_switch_up"].Metric[0].Label[1].GetValue() != "l\"2\n\\" ||
		families["trainyard_job_steps_total"].Metric[0].Counter.GetValue() != 12 {
		t.Errorf("read back as %v", families)
	}
}

func TestHandler(t *testing.T) {
	h := NewHandler("an exporter")
	server := httptest.NewServer(h.Routes())
	defer server.Close()
	get := func(path, encoding string) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept-Encoding", encoding)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body := io.Reader(resp.Body)
		if resp.Header.Get("Content-Encoding") == "gzip" {
			if body, err = gzip.NewReader(resp.Body); err != nil {
				t.Fatal(err)
			}
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header, string(b)
	}
	if code, _, body := get("/metrics", "gzip"); code != 200 || body != "" {
		t.Errorf("before the first snapshot: %d %q", code, body)
	}
	for range 2 { // the writer is used again
		h.Publish(&source.Snapshot{
			Taken:   time.Now(),
			Samples: []source.Sample{source.New("trainyard_switch_up", 1, "lab", "l1")},
			Sources: []source.Status{{Name: "snmp/l1", Read: true, Err: errors.New("<b>no answer</b>")}, {Name: "memory", Read: true, Success: true, LastSuccess: time.Now()}},
		})
	}
	for encoding, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "": "", "gzip;q=0": "", "br": ""} {
		code, header, body := get("/metrics", encoding)
		if code != 200 || header.Get("Content-Encoding") != want || header.Get("Content-Type") != ContentType || !strings.HasSuffix(body, "trainyard_switch_up{fabric=\"lab\",switch=\"l1\"} 1\n") {
			t.Errorf("%q: %d %v %q", encoding, code, header, body)
		}
	}
	if _, _, body := get("/", ""); !strings.Contains(body, "snmp/l1") || !strings.Contains(body, "&lt;b&gt;no answer") || !strings.Contains(body, "an exporter") {
		t.Errorf("landing page is %s", body)
	}
	if code, _, body := get("/-/healthy", ""); code != 200 || body != "healthy\n" {
		t.Errorf("health: %d %q", code, body)
	}
	if code, _, _ := get("/nothing", ""); code != 404 {
		t.Errorf("unknown path: %d", code)
	}
	resp, err := http.Post(server.URL+"/metrics", "text/plain", nil) //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func BenchmarkPublish(b *testing.B) {
	var samples []source.Sample
	for i := range 2500 {
		samples = append(samples, source.New("trainyard_switch_port_receive_bytes_total", float64(i)*1e9, "lab", "leaf"+string(rune('a'+i%26)), "Ethernet"+string(rune('0'+i%10))+strings.Repeat("x", i/260)))
	}
	h := NewHandler("bench")
	for b.Loop() {
		h.Publish(&source.Snapshot{Samples: samples})
	}
}
