// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const stateDirPrefix = "trainyard-lab-"

// owner tells whose lab a state directory is. The start time guards against a process id used again.
type owner struct {
	Prefix string `json:"prefix"`
	PID    int    `json:"pid"`
	Start  string `json:"start"`
}

func writeOwner(dir, prefix string) error {
	_, start, err := statOf(os.Getpid())
	if err != nil {
		return fmt.Errorf("record the owner of the lab: %w", err)
	}
	raw, err := json.Marshal(owner{prefix, os.Getpid(), start})
	if err != nil {
		return fmt.Errorf("record the owner of the lab: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "owner.json"), raw, 0o600); err != nil {
		return fmt.Errorf("record the owner of the lab: %w", err)
	}
	return nil
}

func (o owner) alive() bool {
	state, start, err := statOf(o.PID)
	return err == nil && start == o.Start && state != "Z"
}

// Sweep removes what labs of processes that are gone left behind. Labs of living processes stay.
func Sweep() error {
	_, err := sweep(func(o owner) bool { return !o.alive() })
	return err
}

// Remove takes down the lab that was left up by hand with this prefix, whoever owns it; "" = all labs.
func Remove(prefix string) (int, error) {
	return sweep(func(o owner) bool { return prefix == "" || o.Prefix == prefix })
}

func sweep(want func(owner) bool) (int, error) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), stateDirPrefix+"*"))
	if err != nil {
		return 0, fmt.Errorf("look for old labs: %w", err)
	}
	var errs []error
	n := 0
	for _, dir := range dirs {
		raw, err := os.ReadFile(filepath.Join(dir, "owner.json"))
		var o owner
		if err != nil || json.Unmarshal(raw, &o) != nil || len(o.Prefix) < 4 {
			continue // being made at this moment, or not ours
		}
		if !want(o) {
			continue
		}
		n++
		if err := tearDown(o.Prefix, dir); err != nil {
			errs = append(errs, err)
		}
	}
	return n, errors.Join(errs...)
}
