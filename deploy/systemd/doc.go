// SPDX-License-Identifier: Apache-2.0

// Package systemd holds the units that run trainyard on plain machines, and the tests that read them. It has no code.
package systemd
