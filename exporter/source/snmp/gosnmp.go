// SPDX-License-Identifier: Apache-2.0

package snmp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/gosnmp/gosnmp"

	"github.com/trainyard/trainyard/exporter/config"
)

// library is the client made of gosnmp. It is not safe for two goroutines, and neither are the security parameters
// that it keeps a pointer to: each client has its own of both.
type library struct {
	snmp *gosnmp.GoSNMP
	tap  *tap // nil for v2c
}

// tap keeps the last packet that came in: the library throws away an agent's unauthenticated report, which is how an
// agent says that it refuses the credentials.
type tap struct {
	net.Conn
	last []byte
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if n > 0 {
		t.last = append(t.last[:0], b[:n]...)
	}
	return n, err
}

var authProtocols = map[string]gosnmp.SnmpV3AuthProtocol{
	"md5": gosnmp.MD5, "sha": gosnmp.SHA, "sha224": gosnmp.SHA224, "sha256": gosnmp.SHA256, "sha384": gosnmp.SHA384, "sha512": gosnmp.SHA512,
}

var privProtocols = map[string]gosnmp.SnmpV3PrivProtocol{
	"des": gosnmp.DES, "aes": gosnmp.AES, "aes192": gosnmp.AES192, "aes256": gosnmp.AES256, "aes192c": gosnmp.AES192C, "aes256c": gosnmp.AES256C,
}

// dial makes a client for one agent. With UDP it sends nothing yet.
func dial(endpoint string, c config.Credentials, timeout time.Duration, retries int) (client, error) {
	host, portText, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, fmt.Errorf("address of the agent: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("port of the agent: %w", err)
	}
	g := &gosnmp.GoSNMP{Target: host, Port: uint16(port), Timeout: timeout, Retries: retries, Context: context.Background(), MaxOids: 2 * varbindsPerRequest}
	switch c.Version {
	case config.V2c:
		g.Version, g.Community = gosnmp.Version2c, c.Community.Reveal()
	case config.V3:
		g.Version, g.SecurityModel, g.ContextName = gosnmp.Version3, gosnmp.UserSecurityModel, c.Context
		usm := &gosnmp.UsmSecurityParameters{UserName: c.User, AuthenticationProtocol: gosnmp.NoAuth, PrivacyProtocol: gosnmp.NoPriv}
		g.MsgFlags = gosnmp.NoAuthNoPriv
		if c.Auth != "" {
			g.MsgFlags = gosnmp.AuthNoPriv
			usm.AuthenticationProtocol, usm.AuthenticationPassphrase = authProtocols[c.Auth], c.AuthPass.Reveal()
		}
		if c.Priv != "" {
			g.MsgFlags = gosnmp.AuthPriv
			usm.PrivacyProtocol, usm.PrivacyPassphrase = privProtocols[c.Priv], c.PrivPass.Reveal()
		}
		g.SecurityParameters = usm
	default:
		return nil, fmt.Errorf("SNMP version %q is not known", c.Version)
	}
	if err := g.Connect(); err != nil {
		return nil, fmt.Errorf("open a socket to %s: %w", endpoint, err)
	}
	if c.Version != config.V3 {
		return &library{snmp: g}, nil
	}
	t := &tap{Conn: g.Conn}
	g.Conn = t
	return &library{g, t}, nil
}

func (l *library) close() error { return l.snmp.Close() }

func (l *library) get(ctx context.Context, oids []oid) ([]varbind, error) {
	l.snmp.Context = ctx
	p, err := l.snmp.Get(names(oids))
	return answer(p, l.refusal(err))
}

func (l *library) getBulk(ctx context.Context, oids []oid, repetitions int) ([]varbind, error) {
	l.snmp.Context = ctx
	p, err := l.snmp.GetBulk(names(oids), 0, uint32(repetitions)) //nolint:gosec // at most varbindsPerRequest
	return answer(p, l.refusal(err))
}

// reports are the counters of SNMP-USER-BASED-SM-MIB (RFC 3414) that a report carries, and the library's errors for
// them.
var reports = map[string]error{
	".1.3.6.1.6.3.15.1.1.1.0": gosnmp.ErrUnknownSecurityLevel,
	".1.3.6.1.6.3.15.1.1.3.0": gosnmp.ErrUnknownUsername,
	".1.3.6.1.6.3.15.1.1.5.0": gosnmp.ErrWrongDigest,
	".1.3.6.1.6.3.15.1.1.6.0": gosnmp.ErrDecryption,
}

// refusal adds to an error what the agent said last in clear. Anybody could have sent that: it serves the message only.
func (l *library) refusal(err error) error {
	if err == nil || l.tap == nil || len(l.tap.last) == 0 {
		return err
	}
	reader := &gosnmp.GoSNMP{Version: gosnmp.Version3, SecurityModel: gosnmp.UserSecurityModel, MsgFlags: gosnmp.NoAuthNoPriv,
		SecurityParameters: &gosnmp.UsmSecurityParameters{UserName: "reader"}}
	p, decodeErr := reader.SnmpDecodePacket(l.tap.last)
	if decodeErr != nil || p.PDUType != gosnmp.Report || len(p.Variables) != 1 {
		return err
	}
	if meaning := reports[p.Variables[0].Name]; meaning != nil && !errors.Is(err, meaning) {
		return fmt.Errorf("%w (%w)", meaning, err)
	}
	return err
}

func names(oids []oid) []string {
	s := make([]string, len(oids))
	for i, o := range oids {
		s[i] = "." + o.String()
	}
	return s
}

func answer(p *gosnmp.SnmpPacket, err error) ([]varbind, error) {
	switch {
	case err != nil:
		return nil, explain(err)
	case p.Error == gosnmp.TooBig:
		return nil, errTooBig
	case p.Error != gosnmp.NoError:
		return nil, fmt.Errorf("the agent answers with the error %v", p.Error)
	}
	vbs := make([]varbind, len(p.Variables))
	for i, pdu := range p.Variables {
		if vbs[i], err = decode(pdu); err != nil {
			return nil, fmt.Errorf("variable %d of the answer: %w", i+1, err)
		}
	}
	return vbs, nil
}

// decode turns the library's types into ours; a type that we do not read is absent.
func decode(pdu gosnmp.SnmpPDU) (varbind, error) {
	o, err := parseOID(pdu.Name)
	if err != nil {
		return varbind{}, err
	}
	vb := varbind{oid: o}
	switch v := pdu.Value.(type) {
	case int:
		vb.value = value{kind: number, num: uint64(int64(v))} //nolint:gosec // two's complement is meant
	case uint:
		vb.value = value{kind: number, num: uint64(v)}
	case uint32:
		vb.value = value{kind: number, num: uint64(v)}
	case uint64:
		vb.value = value{kind: number, num: v}
	case []byte:
		vb.value = value{kind: text, bytes: v}
	case string:
		if pdu.Type == gosnmp.IPAddress {
			if a, err := netip.ParseAddr(v); err == nil {
				vb.value = value{kind: text, bytes: a.AsSlice()}
			}
		}
	}
	if pdu.Type == gosnmp.EndOfMibView {
		vb.value = value{kind: endOfMIB}
	}
	return vb, nil
}

// errNoAnswer is a poll that nobody answered.
var errNoAnswer = errors.New("no answer")

// explain says in words what an operator can do about an error.
func explain(err error) error {
	var network net.Error
	switch {
	case errors.Is(err, gosnmp.ErrUnknownUsername):
		return fmt.Errorf("credentials refused: the agent does not know the user: %w", err)
	case errors.Is(err, gosnmp.ErrWrongDigest):
		return fmt.Errorf("credentials refused: wrong authentication passphrase or protocol: %w", err)
	case errors.Is(err, gosnmp.ErrDecryption):
		return fmt.Errorf("credentials refused: wrong privacy passphrase or protocol: %w", err)
	case errors.Is(err, gosnmp.ErrUnknownSecurityLevel):
		return fmt.Errorf("credentials refused: the agent wants another security level: %w", err)
	case errors.Is(err, gosnmp.ErrMaxRetriesExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &network):
		return fmt.Errorf("%w: the agent is unreachable or stopped, or it drops what it cannot read (a wrong community, a wrong privacy passphrase): %w", errNoAnswer, err)
	}
	return err
}
