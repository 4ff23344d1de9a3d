// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/api"
	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/actuator/policy"
	"github.com/trainyard/trainyard/deploy/monitoring"
	"github.com/trainyard/trainyard/test/tools/toolbox"
)

// control is the real control side of a run: Prometheus, Alertmanager and the actuator.
type control struct {
	yard                               yard
	client                             *http.Client
	prometheus, alertmanager, actuator string // base URLs
	cli                                string // path of the command-line tool
	inbox                              *inbox // where people would hear of it
}

// startControl starts exporters, Prometheus, Alertmanager and actuator, in the order in which they need each other, and
// waits until each is ready.
func startControl(ctx context.Context, y yard, dir string, mode policy.Mode, bin binaries, say *timeline) (*control, error) {
	c, err := startMonitoring(ctx, y, dir)
	if err != nil {
		return nil, err
	}
	c.cli = bin.cli
	setup := actuatorSetup{Dir: dir, Listen: strings.TrimPrefix(c.actuator, "http://"), Prometheus: c.prometheus, Alertmanager: c.alertmanager, Mode: mode}
	if err := y.Actuator(ctx, setup); err != nil {
		return nil, fmt.Errorf("start actuator: %w", err)
	}
	if err := c.ready(ctx, "actuator", c.actuator+"/-/ready"); err != nil {
		return nil, err
	}
	say.event("Prometheus %s, Alertmanager %s, actuator %s in mode %s", c.prometheus, c.alertmanager, c.actuator, mode)
	return c, nil
}

// startMonitoring starts exporters, Alertmanager and Prometheus.
func startMonitoring(ctx context.Context, y yard, dir string) (*control, error) {
	p := monitoring.Lab()
	var err error
	if p.NodeExporters, p.FabricExporters, err = y.Exporters(ctx); err != nil {
		return nil, fmt.Errorf("start exporters: %w", err)
	}
	ports := map[string]int{"prometheus": 9090, "alertmanager": 9093, "actuator": 9610}
	for name, want := range ports {
		if ports[name], err = y.Port(want); err != nil {
			return nil, err
		}
	}
	at := func(name string) string { return "127.0.0.1:" + strconv.Itoa(ports[name]) }
	c := &control{
		yard: y, client: y.Client(),
		prometheus: "http://" + at("prometheus"), alertmanager: "http://" + at("alertmanager"), actuator: "http://" + at("actuator"),
	}
	if c.inbox, err = openInbox(ctx, y); err != nil {
		return nil, err
	}
	p.Actuators, p.Alertmanagers = []string{at("actuator")}, []string{at("alertmanager")}
	p.Webhook = c.actuator + "/webhook/alertmanager"
	p.SlackURL = c.inbox.url
	if _, err := monitoring.WritePrometheus(dir, p); err != nil {
		return nil, err
	}
	if _, err := monitoring.WriteAlertmanager(dir, p); err != nil {
		return nil, err
	}
	for _, s := range []struct {
		name, ready string
		args        []string
	}{
		{"alertmanager", c.alertmanager + "/-/ready", monitoring.AlertmanagerArgs(dir, at("alertmanager"))},
		{"prometheus", c.prometheus + "/-/ready", monitoring.PrometheusArgs(dir, at("prometheus"), p)},
	} {
		path, err := toolbox.Path(s.name)
		if err != nil {
			return nil, err
		}
		if err := y.Run(ctx, s.name, append([]string{path}, s.args...)...); err != nil {
			return nil, err
		}
		if err := c.ready(ctx, s.name, s.ready); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// ready waits until an address answers 200.
func (c *control) ready(ctx context.Context, name, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var last error
	for {
		if last = c.get(ctx, address, nil); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", name, errors.Join(ctx.Err(), last))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// get reads JSON into out, or nothing if out is nil.
func (c *control) get(ctx context.Context, address string, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return fmt.Errorf("read answer of %s: %w", address, err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("ask %s: %s: %.300s", address, resp.Status, body)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("decode answer of %s: %w", address, err)
	}
	return nil
}

// sample is one series of an instant query.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

func (c *control) query(ctx context.Context, q string) ([]sample, error) {
	var answer struct {
		Data struct {
			Result []sample `json:"result"`
		} `json:"data"`
	}
	err := c.get(ctx, c.prometheus+"/api/v1/query?query="+url.QueryEscape(q), &answer)
	return answer.Data.Result, err
}

// firing lists the links for which the alert fires.
func (c *control) firing(ctx context.Context) ([]string, error) {
	rows, err := c.query(ctx, `ALERTS{alertname="FabricLinkCongested",alertstate="firing"}`)
	var links []string
	for _, r := range rows {
		links = append(links, r.Metric["link"])
	}
	return links, err
}

// use is what Prometheus thinks of the use of l1's uplinks, by port; a status line needs no more than an attempt.
func (c *control) use(ctx context.Context, fabric string) map[string]float64 {
	use := map[string]float64{"sp1": math.NaN(), "sp2": math.NaN()}
	rows, _ := c.query(ctx, fmt.Sprintf(`link:use:ratio{fabric=%q,switch="l1",direction="up"}`, fabric))
	for _, r := range rows {
		if s, ok := r.Value[1].(string); ok {
			if v, err := strconv.ParseFloat(s, 64); err == nil {
				use[r.Metric["port"]] = v
			}
		}
	}
	return use
}

// incidents asks the actuator for all its incidents with their stories.
func (c *control) incidents(ctx context.Context) ([]flow.View, error) {
	var list api.Incidents
	err := c.get(ctx, c.actuator+api.Prefix+"/incidents", &list)
	return list.Incidents, err
}

// explain runs the command-line tool, as a person would.
func (c *control) explain(ctx context.Context, id string) (string, error) {
	return c.yard.Output(ctx, c.cli, "--server", c.actuator, "explain", id)
}

// binaries are the programs of the product, built for this demo.
type binaries struct{ exporter, actuator, cli string }

// build compiles the programs into dir.
func build(ctx context.Context, root, dir string) (binaries, error) {
	b := binaries{filepath.Join(dir, "trainyard-exporter"), filepath.Join(dir, "trainyard-actuator"), filepath.Join(dir, "trainyard")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return b, fmt.Errorf("build into %s: %w", dir, err)
	}
	for path, pkg := range map[string]string{b.exporter: "./exporter", b.actuator: "./actuator", b.cli: "./actuator/ctl/trainyard"} {
		if err := goTool(ctx, root, "build", "-o", path, pkg); err != nil {
			return b, err
		}
	}
	return b, nil
}
