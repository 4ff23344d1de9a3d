// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ethtool

func statistics(string) (map[string]uint64, error) { return nil, errUnsupported }
