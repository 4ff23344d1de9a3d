// SPDX-License-Identifier: Apache-2.0

// Package intake takes what Alertmanager says and makes plain events of it: the webhook of version 4, and the alerts that
// a poll reads. A message is a hint: intake answers once it is on disk, and decides nothing. It believes nothing either:
// each alert is decoded strictly and by itself, so that one bad alert loses only itself.
package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/trainyard/trainyard/actuator/flow"
)

// Bounds of one alert. A record of the journal holds it whole.
const (
	maxLabels     = 64
	maxAlertBytes = 32 << 10
	maxSummary    = 1 << 10
	maxAlerts     = 50_000
)

// Delivery is one body of the webhook.
type Delivery struct {
	Receiver    string // regexp-quoted by Alertmanager, as it came
	GroupKey    string // changes when somebody edits the route: never an identity
	ExternalURL string // differs between replicas: never part of an identity
	Truncated   int    // alerts that were cut off: absence and status mean nothing then
	Alerts      []flow.AlertEvent
	Bad         []Bad
}

// Bad is an alert that was set aside, with the place and the reason.
type Bad struct {
	Index  int    `json:"alert"` // in the body, from 0
	Reason string `json:"reason"`
}

// Decode reads one body. An error means that the body as a whole is not a message of version 4, and names the place;
// alerts that are bad by themselves are set aside instead.
func Decode(body []byte) (Delivery, error) {
	// Loose about duplicates and UTF-8 here, to find where each alert begins and ends; each is then read strictly.
	dec := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var d Delivery
	seen := map[string]bool{}
	err := object(dec, "", func(name string) error {
		if seen[name] {
			return fmt.Errorf("/%s: twice", name)
		}
		seen[name] = true
		var err error
		switch name {
		case "version":
			var version string
			if version, err = text(dec, "/version"); err == nil && version != "4" {
				err = fmt.Errorf("/version: %.20q, this receiver reads \"4\" (Alertmanager's own; not Grafana's, not a custom payload)", version)
			}
		case "receiver":
			d.Receiver, err = text(dec, "/receiver")
		case "groupKey":
			d.GroupKey, err = text(dec, "/groupKey")
		case "externalURL":
			d.ExternalURL, err = text(dec, "/externalURL")
		case "truncatedAlerts":
			d.Truncated, err = count(dec, "/truncatedAlerts")
		case "alerts":
			err = d.alerts(dec)
		default: // status and the common fields are computed from a list that may be cut: nobody reads them
			err = skip(dec, "/"+name)
		}
		return err
	})
	if err != nil {
		return Delivery{}, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return Delivery{}, fmt.Errorf("byte %d: something follows the message", dec.InputOffset())
	}
	for _, name := range []string{"version", "alerts"} {
		if !seen[name] {
			return Delivery{}, fmt.Errorf("/%s: missing", name)
		}
	}
	if len(d.Alerts) == 0 && len(d.Bad) > 0 {
		return Delivery{}, fmt.Errorf("/alerts/%d: %s (and no other alert is sound)", d.Bad[0].Index, d.Bad[0].Reason)
	}
	return d, nil
}

func (d *Delivery) alerts(dec *jsontext.Decoder) error {
	if k := dec.PeekKind(); k != '[' {
		return wrong("/alerts", "an array", k)
	}
	if _, err := dec.ReadToken(); err != nil {
		return at("/alerts", err)
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		if i == maxAlerts {
			return fmt.Errorf("/alerts: more than %d", maxAlerts)
		}
		raw, err := dec.ReadValue()
		if err != nil {
			return at(fmt.Sprintf("/alerts/%d", i), err)
		}
		a, err := decodeAlert(raw)
		if err != nil {
			d.Bad = append(d.Bad, Bad{i, err.Error()})
			continue
		}
		d.Alerts = append(d.Alerts, a)
	}
	_, err := dec.ReadToken()
	return at("/alerts", err)
}

// decodeAlert reads one alert: duplicate names, other spellings of a name's case, null where text belongs, and invalid
// UTF-8 are all faults. Fields that we do not know are skipped: Alertmanager adds some with every version.
func decodeAlert(raw []byte) (flow.AlertEvent, error) {
	if len(raw) > maxAlertBytes {
		return flow.AlertEvent{}, fmt.Errorf("%d bytes, at most %d", len(raw), maxAlertBytes)
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	var r Raw
	var status, ends string
	err := object(dec, "", func(name string) error {
		var err error
		switch name {
		case "status":
			status, err = text(dec, "/status")
		case "labels":
			r.Labels, err = texts(dec, "/labels")
		case "annotations":
			r.Annotations, err = texts(dec, "/annotations")
		case "startsAt":
			r.StartsAt, err = moment(dec, "/startsAt")
		case "endsAt": // the zero time means "not ended"; status says the same, and is what counts
			ends, err = text(dec, "/endsAt")
		case "fingerprint":
			r.Fingerprint, err = text(dec, "/fingerprint")
		default:
			for _, known := range []string{"status", "labels", "annotations", "startsAt", "endsAt", "fingerprint"} {
				if strings.EqualFold(name, known) {
					return fmt.Errorf("/%.40s: spelled %q by Alertmanager", name, known)
				}
			}
			err = skip(dec, "/"+name)
		}
		return err
	})
	if err != nil {
		return flow.AlertEvent{}, err
	}
	if _, err := time.Parse(time.RFC3339Nano, ends); ends != "" && err != nil {
		return flow.AlertEvent{}, fmt.Errorf("/endsAt: %.40q is no time", ends)
	}
	switch status {
	case "firing":
		r.Firing = true
	case "resolved":
	default:
		return flow.AlertEvent{}, fmt.Errorf("/status: %.40q, want \"firing\" or \"resolved\"", status)
	}
	r.Source = "webhook"
	return r.Event()
}
