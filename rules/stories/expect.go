// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainyard/trainyard/rules"
)

// congested is the expected FabricLinkCongested: how full the link is and its peers are (negative: it has none), and
// the slowdown of the slowest job behind it (0: none is judged).
func congested(link string, use, peers, slowdown float64) Alert {
	device, port, _ := strings.Cut(link, ":")
	name := "f/" + link
	text := fmt.Sprintf("%s is %.4g%% full", name, 100*use)
	if peers < 0 {
		text += " and has no live peer"
	} else {
		text += fmt.Sprintf(", its peers carry %.4g%%", 100*peers)
	}
	if slowdown > 0 {
		text += fmt.Sprintf("; the slowest job behind it takes %.2f times its usual step time", slowdown)
	}
	return Alert{
		map[string]string{"severity": "warning", "owner": "network", "fabric": "f", "link": name, "switch": device, "port": port},
		map[string]string{"summary": "Link " + name + " is congested and a job behind it suffers", "description": text + ".",
			"runbook_url": "rules/runbooks/FabricLinkCongested.md"},
	}
}

func imbalance(leaf string, ratio float64) Alert {
	return Alert{
		map[string]string{"severity": "info", "owner": "network", "fabric": "f", "switch": leaf},
		map[string]string{"summary": "The uplinks of " + leaf + " carry unlike loads",
			"description": fmt.Sprintf("The busiest uplink of %s in fabric f carries %.1f times the mean of the others.", leaf, ratio),
			"runbook_url": "rules/runbooks/FabricUplinkImbalance.md"},
	}
}

func unreachable(name string) Alert {
	return Alert{
		map[string]string{"severity": "critical", "owner": "network", "fabric": "f", "switch": name},
		map[string]string{"summary": "The agent of switch " + name + " does not answer",
			"description": "No exporter can read switch " + name + " of fabric f; its links are not watched, and nothing is done about them.",
			"runbook_url": "rules/runbooks/FabricSwitchUnreachable.md"},
	}
}

func fragmented(node, zone string, percent int) Alert {
	return Alert{
		map[string]string{"severity": "warning", "owner": "platform", "node": node, "numa_node": "0", "zone": zone},
		map[string]string{"summary": "Free memory of " + node + " cannot serve huge pages",
			"description": fmt.Sprintf("%d%% of the free memory in zone %s of NUMA node 0 on %s lies in blocks smaller than a huge page, and allocations of huge pages fail there.", percent, zone, node),
			"runbook_url": "rules/runbooks/HostMemoryFragmented.md"},
	}
}

func exporterDown(job string) Alert {
	return Alert{
		map[string]string{"severity": "warning", "owner": "platform", "job": job, "instance": "a"},
		map[string]string{"summary": job + " at a cannot be scraped",
			"description": "What " + job + " at a reports is missing; alerts about it cannot fire, and nothing is done about it.",
			"runbook_url": "rules/runbooks/TrainyardExporterDown.md"},
	}
}

// quiet says that none of all alerts fires at any of the ticks.
func quiet(ticks ...int) []AlertCheck {
	var checks []AlertCheck
	for _, t := range ticks {
		for _, name := range alertNames {
			checks = append(checks, AlertCheck{At: t, Alert: name})
		}
	}
	return checks
}

// only says that at a tick these alerts of a name fire and no others of that name.
func only(at int, name string, want ...Alert) AlertCheck { return AlertCheck{at, name, want} }

// none says that at a tick no alert of the name fires.
func none(at int, name string) AlertCheck { return AlertCheck{At: at, Alert: name} }

var alertNames = []string{linkCongested, uplinkImbalance, switchUnreachable, hostFragmented, exporterIsDown}

const (
	linkCongested     = "FabricLinkCongested"
	uplinkImbalance   = "FabricUplinkImbalance"
	switchUnreachable = "FabricSwitchUnreachable"
	hostFragmented    = "HostMemoryFragmented"
	exporterIsDown    = "TrainyardExporterDown"
)

// ticks is a duration of a profile in scrapes, rounded up.
func ticks(p rules.Profile, duration string) int {
	return int(math.Ceil(must(time.ParseDuration(duration)).Seconds() / tickSeconds(p)))
}

// tickSeconds is the scrape interval of a profile.
func tickSeconds(p rules.Profile) float64 { return must(time.ParseDuration(p.Scrape)).Seconds() }

// must serves the durations of the profiles: they are constants of this repository.
func must(d time.Duration, err error) time.Duration {
	if err != nil {
		panic(err)
	}
	return d
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
