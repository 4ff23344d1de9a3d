// SPDX-License-Identifier: Apache-2.0

// Package trainyardreceiver is an OpenTelemetry receiver over the sources of trainyard's node role. It reads the same
// Set as the exporter's /metrics, so a value is the same on both ways out. It never talks to switches (they belong to
// the fabric role), and it never acts.
package trainyardreceiver
