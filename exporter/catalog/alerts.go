// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Alert says which labels an alert must carry for the actuator (contract: a target that cannot be named is refused).
type Alert struct {
	Name   string
	Labels []string // all of them, none empty
	About  string
}

// everyAlert are the labels that route an alert to people.
var everyAlert = []string{"severity", "owner"}

func alert(name, about string, labels ...string) Alert {
	return Alert{Name: name, About: about, Labels: append(slices.Clone(everyAlert), labels...)}
}

var alerts = []Alert{
	alert("FabricLinkCongested", "a directed link is busy beyond its peers and a job suffers", "fabric", "link", "switch", "port"),
	alert("FabricUplinkImbalance", "the uplinks of a leaf carry unlike loads", "fabric", "switch"),
	alert("HostMemoryFragmented", "free memory of a zone cannot serve huge pages", "node", "numa_node", "zone"),
	alert("FabricSwitchUnreachable", "a switch's SNMP agent does not answer", "fabric", "switch"),
	alert("TrainyardExporterDown", "an exporter cannot be scraped"),
}

// Alerts returns the table of alerts.
func Alerts() []Alert { return slices.Clone(alerts) }

// LookupAlert finds the row of an alert.
func LookupAlert(name string) (Alert, bool) {
	i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Name == name })
	if i < 0 {
		return Alert{}, false
	}
	return alerts[i], true
}

// CheckLabels says which labels an alert lacks. An alert that is not in the table is an error too: nobody knows what
// it would have to carry. An empty label counts as missing, as in Prometheus.
func CheckLabels(name string, labels map[string]string) error {
	a, ok := LookupAlert(name)
	if !ok {
		return fmt.Errorf("alert %q is not in the catalogue", name)
	}
	var missing []string
	for _, l := range a.Labels {
		if labels[l] == "" {
			missing = append(missing, l)
		}
	}
	if missing != nil {
		return fmt.Errorf("alert %s lacks the labels %s", name, strings.Join(missing, ", "))
	}
	return nil
}
