// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// needed maps each program that the lab runs to the Debian package that brings it.
var needed = []struct{ path, pkg string }{
	{"snmpd", "snmpd"}, {"snmpset", "snmp"}, {"lldpd", "lldpd"}, {"iperf3", "iperf3"}, {"ethtool", "ethtool"},
	{"tc", "iproute2"}, {"ip", "iproute2"}, {frrDir + "/bgpd", "frr"}, {"vtysh", "frr"},
	{frrModules + "/bgpd_snmp.so", "frr-snmp"},
}

// Require says in one line what is missing for a lab: root or packages. nil = Up can be tried.
func Require() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("the lab makes network namespaces and needs root; use --simulated without it")
	}
	if missing := MissingPackages(); len(missing) > 0 {
		return fmt.Errorf("the lab needs the packages %s (make lab-deps installs them); use --simulated without them", strings.Join(missing, " "))
	}
	return nil
}

// MissingPackages lists the Debian packages whose programs are not there.
func MissingPackages() []string {
	var missing []string
	seen := map[string]bool{}
	for _, n := range needed {
		if seen[n.pkg] || have(n.path) {
			continue
		}
		seen[n.pkg] = true
		missing = append(missing, n.pkg)
	}
	return missing
}

func have(program string) bool {
	if strings.HasPrefix(program, "/") {
		_, err := os.Stat(program)
		return err == nil
	}
	if _, err := exec.LookPath(program); err == nil {
		return true
	}
	_, err := os.Stat("/usr/sbin/" + program) // sbin is not in everybody's PATH
	return err == nil
}
