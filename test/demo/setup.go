// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/actuator/policy"
)

// actuatorSetup is what a yard needs to know to start the actuator.
type actuatorSetup struct {
	Dir          string // journal, policy file, log
	Listen       string
	Prometheus   string // base URLs
	Alertmanager string
	Mode         policy.Mode
}

// yaml is the actuator's configuration without its driver.
func (c actuatorSetup) yaml(fabric string) string {
	return fmt.Sprintf(`profile: lab
listen: %s
prometheus: {url: %s, fabric: %s}
alertmanager: {url: %s, receiver: trainyard-actuator}
journal_dir: journal
policies_file: policies.yaml
stop_file: stop
`, c.Listen, c.Prometheus, fabric, c.Alertmanager)
}

// policies is the demo's policy file: one goal for one alert. Times are short, since the lab's jobs take 0.2 s a step.
func (c actuatorSetup) policies() string {
	return fmt.Sprintf(`version: 1
policies:
  - name: relieve-congested-links
    match: {alerts: [FabricLinkCongested], clusters: ["*"], fabrics: ["*"]}
    goal: relieve-link
    mode: %s
    budgets: {max_concurrent: 1, per_hour: 10, max_switches: 2, max_routes: 4, min_paths_left: 1, storm: 16}
    cooldown: 5s
    hold: 5m
    hold_max: 1h
    decide_deadline: 10s
    step_deadline: 3s
    settle: 200ms
    verify_deadline: 20s
    max_data_age: 3s
`, c.Mode)
}

// write puts both files into the run's folder and returns the path of the configuration.
func (c actuatorSetup) write(config string) (string, error) {
	path := filepath.Join(c.Dir, "actuator.yaml")
	for name, text := range map[string]string{path: config, filepath.Join(c.Dir, "policies.yaml"): c.policies()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("configure the actuator: %w", err)
		}
	}
	return path, nil
}

// stopGrace is how long a program may take to end in good order.
const stopGrace = 3 * time.Second
