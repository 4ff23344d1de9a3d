// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// agentNice keeps control daemons answering while soft interrupts forward packets on all cores.
const agentNice = -10

func (l *Lab) agentX(place string) string { return filepath.Join(l.Dir, place, "agentx") }

// startAgents starts snmpd on the switches and lldpd on switches and hosts.
func (l *Lab) startAgents(ctx context.Context) error {
	if l.cfg.NoAgents {
		return nil
	}
	return l.each(ctx, l.devices(), func(ctx context.Context, place string) error {
		if s, ok := l.Switch(place); ok {
			if _, err := l.StartSNMP(ctx, s.Name); err != nil {
				return err
			}
		}
		return l.startLLDP(ctx, place)
	})
}

// snmpdConf is one switch's agent: read-only towards the management network, writable on loopback for the cache time.
func (l *Lab) snmpdConf(s Switch) string {
	var b strings.Builder
	fmt.Fprintf(&b, `agentaddress udp:%s:161,udp:127.0.0.1:161
master agentx
agentXSocket %s
agentXPerms 0777 0777
sysName %s
sysLocation lab
dontLogTCPWrappersConnects yes
sysDescr trainyard lab switch
rocommunity %s default
rwcommunity %s 127.0.0.1
rouser %s priv
`, s.Mgmt, l.agentX(s.Name), s.Name, SNMPCommunity, snmpRWCommunity, SNMPUser)
	for _, port := range l.Ports(s.Name) {
		// veth always claims 10 Gbit/s; 6 = ethernetCsmacd
		fmt.Fprintf(&b, "interface %s 6 %d\n", port, l.RateMbit(s.Name, port)*1_000_000)
	}
	return b.String()
}

// StartSNMP starts a switch's agent and waits until it answers. Up calls it; tests that killed the agent may too.
func (l *Lab) StartSNMP(ctx context.Context, place string) (*Process, error) {
	s, ok := l.Switch(place)
	if !ok {
		return nil, fmt.Errorf("start SNMP agent: %q is no switch", place)
	}
	dir, err := l.stateDir(place, "snmp", "persist")
	if err != nil {
		return nil, err
	}
	dir = filepath.Dir(dir)
	conf := filepath.Join(dir, "snmpd.conf")
	if err := os.WriteFile(conf, []byte(l.snmpdConf(s)), 0o600); err != nil {
		return nil, fmt.Errorf("write %s: %w", conf, err)
	}
	// The user goes into the persistent file once; there snmpd replaces the line by keys and keeps its engine id.
	persist := filepath.Join(dir, "persist", "snmpd.conf")
	if _, err := os.Stat(persist); err != nil {
		user := fmt.Sprintf("createUser %s SHA-256 %q AES %q\n", SNMPUser, SNMPAuthPass, SNMPPrivPass)
		if err := os.WriteFile(persist, []byte(user), 0o600); err != nil {
			return nil, fmt.Errorf("write %s: %w", persist, err)
		}
	}
	p, err := l.Start(place, Command{
		Argv: []string{"snmpd", "-f", "-Lf", filepath.Join(dir, "snmpd.log"), "-p", filepath.Join(dir, "snmpd.pid")},
		Env:  []string{"SNMPCONFPATH=" + dir + ":" + filepath.Join(dir, "persist"), "SNMP_PERSISTENT_DIR=" + filepath.Join(dir, "persist"), "MIBS="},
		Nice: agentNice,
	})
	if err != nil {
		return nil, err
	}
	// snmpd caches the interface table 3 s: a poll each second would see stairs. nsCacheTimeout of ifTable := 0, read at each poll.
	err = waitFor(ctx, 10*time.Second, func() error {
		if _, err := os.Stat(l.agentX(place)); err != nil {
			return err
		}
		_, err := runHost(ctx, "", "ip", "netns", "exec", l.Namespace(place), "env", "MIBS=", "snmpset", "-v2c", "-c", snmpRWCommunity, "-t", "0.5", "-r", "0",
			"127.0.0.1", "1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2", "i", "0")
		return err
	})
	if err != nil {
		p.Kill()
		return nil, fmt.Errorf("wait for the SNMP agent of %s: %w", place, err)
	}
	return p, nil
}

// startLLDP starts lldpd with interface names as port ids: ifIndex and MAC address mean nothing to people.
func (l *Lab) startLLDP(_ context.Context, place string) error {
	dir, err := l.stateDir(place, "lldp")
	if err != nil {
		return err
	}
	ports := strings.Join(l.Ports(place), ",")
	conf := filepath.Join(dir, "lldpd.conf")
	text := "configure system hostname " + place + "\n" +
		"configure system description 'trainyard lab'\n" +
		"configure system interface pattern " + ports + "\n" +
		"configure lldp portidsubtype ifname\n" +
		"configure lldp tx-interval 1\n" +
		"configure lldp tx-hold 4\n"
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", conf, err)
	}
	argv := []string{"lldpd", "-d", "-u", filepath.Join(dir, "lldpd.sock"), "-I", ports, "-O", conf}
	if _, ok := l.Switch(place); ok {
		argv = append(argv, "-x", "-X", l.agentX(place))
	}
	log, err := os.Create(filepath.Join(dir, "lldpd.log"))
	if err != nil {
		return fmt.Errorf("start lldpd of %s: %w", place, err)
	}
	defer log.Close()
	_, err = l.Start(place, Command{Argv: argv, Stdout: log, Stderr: log})
	return err
}
