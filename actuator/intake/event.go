// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"strings"
	"time"

	"github.com/trainyard/trainyard/actuator/flow"
	"github.com/trainyard/trainyard/exporter/catalog"
	"github.com/trainyard/trainyard/exporter/catalog/ident"
)

// Raw is one alert as Alertmanager has it, from the webhook or from its API.
type Raw struct {
	Fingerprint string // 16 hexadecimal digits
	StartsAt    time.Time
	Firing      bool
	Suppressed  bool // silenced, inhibited or muted; only the API tells
	Labels      map[string]string
	Annotations map[string]string
	Source      string // "webhook" or "poll"
}

// Event checks an alert and names its target. An alert whose target cannot be named is still an event: flow says what
// becomes of it. An error means that it is no sound alert at all.
func (r Raw) Event() (flow.AlertEvent, error) {
	if err := checkFingerprint(r.Fingerprint); err != nil {
		return flow.AlertEvent{}, err
	}
	if r.StartsAt.IsZero() {
		return flow.AlertEvent{}, fmt.Errorf("/startsAt: missing")
	}
	name := r.Labels["alertname"]
	if name == "" {
		return flow.AlertEvent{}, fmt.Errorf("/labels/alertname: missing")
	}
	e := flow.AlertEvent{
		Fingerprint: r.Fingerprint, StartsAt: r.StartsAt.UTC(), Firing: r.Firing, Suppressed: r.Suppressed,
		Name: name, Cluster: r.Labels["cluster"], Labels: r.Labels, Source: r.Source,
	}
	if s := r.Annotations["summary"]; len(s) <= maxSummary {
		e.Summary = s
	} else {
		e.Summary = strings.ToValidUTF8(s[:maxSummary], "") + "..."
	}
	target, err := Target(name, r.Labels)
	if err != nil {
		e.TargetError = err.Error()
	}
	e.Target = target
	// Escapes can make six bytes of one; a record must hold the event, or the journal would refuse it again and again.
	encoded, err := flow.EncodeEvent(flow.Alert{Alert: e})
	if err != nil {
		return flow.AlertEvent{}, err
	}
	if len(encoded) > maxAlertBytes {
		return flow.AlertEvent{}, fmt.Errorf("%d bytes in the journal, at most %d", len(encoded), maxAlertBytes)
	}
	return e, nil
}

func checkFingerprint(s string) error {
	if s == "" {
		return fmt.Errorf("/fingerprint: missing")
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return fmt.Errorf("/fingerprint: %.40q is not hexadecimal", s)
		}
	}
	if len(s) != 16 {
		return fmt.Errorf("/fingerprint: %d digits, want 16", len(s))
	}
	return nil
}

// Target names the directed link that an alert is about: the label link, which is the identity of the transmitting port,
// whichever end of the cable noticed. The labels of the catalogue must all be there. Whether it exists is not known
// here: flow refuses what the inventory of the moment does not have.
func Target(name string, labels map[string]string) (ident.Port, error) {
	if err := catalog.CheckLabels(name, labels); err != nil {
		return ident.Port{}, err
	}
	link := labels["link"]
	if link == "" {
		return ident.Port{}, fmt.Errorf("alert %s names no link", name)
	}
	p, err := ident.ParsePort(link)
	if err != nil {
		return ident.Port{}, fmt.Errorf("label link: %w", err)
	}
	if f := labels["fabric"]; f != p.Fabric {
		return ident.Port{}, fmt.Errorf("label link names fabric %q, label fabric %q", p.Fabric, f)
	}
	return p, nil
}
