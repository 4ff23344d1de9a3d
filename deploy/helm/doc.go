// SPDX-License-Identifier: Apache-2.0

// Package helm holds the chart in the folder trainyard and the tests that read what it renders. It has no code of its own.
package helm

//go:generate sh -c "cp ../../rules/production/*.yaml trainyard/rules/"
