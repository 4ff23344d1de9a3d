// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// policyRC is what Debian's package scripts ask before they start a service: exit code 101 means "not now".
const policyRC = "/usr/sbin/policy-rc.d"

// InstallPackages installs the Debian packages that are missing, without letting them start a service: the lab starts
// its own daemons in its own namespaces, and the machine's SNMP, BGP and LLDP are none of its business. It says what
// it does on out.
func InstallPackages(ctx context.Context, out io.Writer) (err error) {
	missing := MissingPackages()
	if len(missing) == 0 {
		fmt.Fprintln(out, "lab-deps: nothing to install")
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("installing %s needs root", strings.Join(missing, " "))
	}
	if !have("apt-get") {
		return fmt.Errorf("install these packages with your system's own tool: %s", strings.Join(missing, " "))
	}
	fmt.Fprintf(out, "lab-deps: installing %s; their services are not started\n", strings.Join(missing, " "))
	restore, err := holdServices()
	if err != nil {
		return fmt.Errorf("keep the packages from starting services: %w", err)
	}
	defer func() { err = errors.Join(err, restore()) }()
	install := append([]string{"install", "-y", "--no-install-recommends"}, missing...)
	if err := apt(ctx, out, install...); err != nil {
		if err := apt(ctx, out, "update"); err != nil { // the lists may be missing or old
			return err
		}
		if err := apt(ctx, out, install...); err != nil {
			return err
		}
	}
	if still := MissingPackages(); len(still) > 0 {
		return fmt.Errorf("installed, but %s still lack", strings.Join(still, " "))
	}
	fmt.Fprintf(out, "lab-deps: installed; to remove them again: apt-get purge %s\n", strings.Join(missing, " "))
	return nil
}

// apt runs apt-get quietly and shows its output if it fails.
func apt(ctx context.Context, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	text, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(out, "%s\n", text)
		return fmt.Errorf("apt-get %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// holdServices puts our policy-rc.d in place; the returned function puts back what was there.
func holdServices() (restore func() error, err error) {
	old, err := os.ReadFile(policyRC)
	existed := err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	mode := os.FileMode(0o755)
	if existed {
		info, err := os.Stat(policyRC)
		if err != nil {
			return nil, err
		}
		mode = info.Mode().Perm()
	}
	restore = func() error {
		if existed {
			return errors.Join(os.WriteFile(policyRC, old, mode), os.Chmod(policyRC, mode))
		}
		return os.Remove(policyRC)
	}
	if err := os.WriteFile(policyRC, []byte("#!/bin/sh\nexit 101\n"), 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(policyRC, 0o755); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}
