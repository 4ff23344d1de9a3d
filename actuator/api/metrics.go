// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trainyard/trainyard/actuator/fault"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/guard"
	"github.com/trainyard/trainyard/actuator/plan"
	"github.com/trainyard/trainyard/actuator/policy"
)

// Metrics are the actuator's own figures. Their names and labels stand in the catalogue; a test compares.
type Metrics struct {
	registry  *prometheus.Registry
	ended     *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	delivered *prometheus.CounterVec
	appends   prometheus.Histogram
	forecast  prometheus.Histogram
}

// NewMetrics makes a registry of its own: nothing is registered globally.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		ended:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trainyard_incidents_total", Help: "Incidents that ended, by outcome."}, []string{"outcome"}),
		refusals:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trainyard_actuator_refusals_total", Help: "Plans that the guard refused, by reason."}, []string{"reason"}),
		delivered: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trainyard_intake_deliveries_total", Help: "Webhook deliveries, by what became of them."}, []string{"result"}),
		appends: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trainyard_journal_append_duration_seconds", Help: "Time to append to the journal, fsync included.",
			// From a fast NVMe's fsync to a disk on which the webhook's second is gone.
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 13),
		}),
		forecast: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trainyard_forecast_error_ratio", Help: "Measured gain over forecast gain, minus one, of verified incidents.",
			Buckets: []float64{-2, -1, -0.5, -0.25, -0.1, -0.05, 0, 0.05, 0.1, 0.25, 0.5, 1, 2},
		}),
	}
	for _, s := range flow.States {
		if s.Terminal() {
			m.ended.WithLabelValues(string(s)) // from the first scrape on, so that increase() sees the first
		}
	}
	m.registry.MustRegister(m.ended, m.refusals, m.delivered, m.appends, m.forecast,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Watched is what is read at each scrape.
type Watched struct {
	Incidents func() []flow.View
	Policies  func() policy.Set
	Routes    func() (desired, installed int)
}

// Watch adds the incidents that are open, the modes of the pools and the routes.
func (m *Metrics) Watch(w Watched) { m.registry.MustRegister(yardCollector{w}) }

// Handler serves the registry.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Delivery counts one webhook delivery.
func (m *Metrics) Delivery(result string) { m.delivered.WithLabelValues(result).Inc() }

// Appended observes one fsync of the journal.
func (m *Metrics) Appended(_ int, took time.Duration) { m.appends.Observe(took.Seconds()) }

// Ended counts an incident that came to its end, and why it was refused if it was.
func (m *Metrics) Ended(v flow.View) {
	m.ended.WithLabelValues(string(v.State)).Inc()
	if v.State == flow.Refused {
		for _, why := range refusals(v) {
			m.refusals.WithLabelValues(why).Inc()
		}
	}
}

// refusals names why an incident was refused, in a bounded set of words: names of guard's checks, or how far it got.
func refusals(v flow.View) []string {
	switch {
	case v.ObservedAt == nil:
		return []string{"no picture"}
	case v.Diagnosis == nil:
		return []string{"no proposal"}
	case !v.Diagnosis.Cause.Reroutable() && v.Diagnosis.Cause != fault.UnexplainedTraffic:
		return []string{"cause"}
	case !v.Explains:
		return []string{"does not explain the present"}
	case v.Chosen == nil || v.Chosen.DoesNothing():
		return []string{"nothing better"}
	case v.Verdict == nil:
		return []string{"taken over"}
	}
	var out []string
	for _, c := range v.Verdict.Checks {
		if c.Decision == guard.Deny {
			out = append(out, c.Name)
		}
	}
	if out == nil {
		return []string{"denied by a human"}
	}
	return out
}

// Verified compares a forecast with what was measured. The gain is that of the step times, as the forecast's is.
func (m *Metrics) Verified(f plan.Forecast, v flow.Verification, measuredGain float64) {
	if f.Gain > 0 && (v.Outcome == flow.Better || v.Outcome == flow.NoChange || v.Outcome == flow.Harm) {
		m.forecast.Observe(measuredGain/f.Gain - 1)
	}
}

// yardCollector reads the loop's state at each scrape.
type yardCollector struct{ w Watched }

var (
	incidentsDesc = prometheus.NewDesc("trainyard_incidents", "Incidents that are open, by state.", []string{"state"}, nil)
	modeDesc      = prometheus.NewDesc("trainyard_actuator_mode", "1 for the mode that a pool is in, 0 for the others.", []string{"pool", "mode"}, nil)
	desiredDesc   = prometheus.NewDesc("trainyard_actuator_routes_desired", "Routes in the table of desired state.", nil, nil)
	installedDesc = prometheus.NewDesc("trainyard_actuator_routes_installed", "Routes that the driver read back as installed.", nil, nil)
)

// Describe implements prometheus.Collector.
func (yardCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{incidentsDesc, modeDesc, desiredDesc, installedDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (y yardCollector) Collect(ch chan<- prometheus.Metric) {
	open := map[flow.IncidentState]int{}
	for _, v := range y.w.Incidents() {
		open[v.State]++
	}
	for _, s := range flow.States {
		if !s.Terminal() {
			ch <- prometheus.MustNewConstMetric(incidentsDesc, prometheus.GaugeValue, float64(open[s]), string(s))
		}
	}
	desired, installed := y.w.Routes()
	ch <- prometheus.MustNewConstMetric(desiredDesc, prometheus.GaugeValue, float64(desired))
	ch <- prometheus.MustNewConstMetric(installedDesc, prometheus.GaugeValue, float64(installed))
	for pool, is := range pools(y.w.Policies()) {
		for _, mode := range []policy.Mode{policy.Watch, policy.Advise, policy.Act} {
			value := 0.0
			if mode == is {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(modeDesc, prometheus.GaugeValue, value, pool, string(mode))
		}
	}
}

// pools gives each pool the strongest mode that any of its policies may act in.
func pools(s policy.Set) map[string]policy.Mode {
	out := map[string]policy.Mode{}
	for _, p := range s.Policies {
		m := s.Mode(p)
		if was, ok := out[p.Pool]; !ok || policy.Weaker(was, m) == was {
			out[p.Pool] = m
		}
	}
	return out
}
