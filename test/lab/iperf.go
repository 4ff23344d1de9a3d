// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"
)

// IperfResult is what an iperf3 client reports at its end.
type IperfResult struct {
	BitsPerSecond float64 // payload, as the receiver counted it
	Bytes         int64
	Retransmits   int64
	Seconds       float64
	Version       string
}

// Iperf describes one iperf3 TCP stream between two NICs of the lab.
type Iperf struct {
	From, To   netip.Addr
	Port       int
	SourcePort int // of the data connection; 0 leaves the choice to the kernel
	Duration   time.Duration
}

// Iperf3 runs one stream and waits for its end: a witness that shares no code with our own generators.
func (l *Lab) Iperf3(ctx context.Context, s Iperf) (IperfResult, error) {
	src, ok1 := l.NIC(s.From)
	dst, ok2 := l.NIC(s.To)
	if !ok1 || !ok2 {
		return IperfResult{}, fmt.Errorf("iperf3 %s -> %s: no such NICs", s.From, s.To)
	}
	from, to := src.Host, dst.Host
	server, err := l.Start(to, Command{Argv: append(Realtime(), "iperf3", "-s", "-1", "-B", s.To.String(), "-p", strconv.Itoa(s.Port))})
	if err != nil {
		return IperfResult{}, err
	}
	defer server.Kill()
	argv := append(Realtime(),
		"iperf3", "-J", "-C", "cubic", "-c", s.To.String(), "-B", s.From.String(), "-p", strconv.Itoa(s.Port),
		"-t", strconv.FormatFloat(max(1, s.Duration.Seconds()), 'f', 0, 64), "--connect-timeout", "3000")
	if s.SourcePort != 0 {
		argv = append(argv, "--cport", strconv.Itoa(s.SourcePort))
	}
	var res IperfResult
	// The server may not listen yet; iperf3 itself does not try again.
	err = waitFor(ctx, 5*time.Second, func() error {
		var out bytes.Buffer
		p, err := l.Start(from, Command{Argv: argv, Stdout: &out})
		if err != nil {
			return permanent{err}
		}
		defer p.Kill()
		waitErr := p.Wait(ctx)
		var answer struct {
			Error string
			Start struct{ Version string }
			End   struct {
				SumReceived struct {
					BPS     float64 `json:"bits_per_second"`
					Bytes   int64
					Seconds float64
				} `json:"sum_received"`
				SumSent struct{ Retransmits int64 } `json:"sum_sent"`
			}
		}
		if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
			return fmt.Errorf("iperf3 %s -> %s: %w", from, to, errors.Join(err, waitErr))
		}
		if answer.Error != "" {
			return fmt.Errorf("iperf3 %s -> %s: %s", from, to, answer.Error)
		}
		end := answer.End
		res = IperfResult{end.SumReceived.BPS, end.SumReceived.Bytes, end.SumSent.Retransmits, end.SumReceived.Seconds, answer.Start.Version}
		return nil
	})
	return res, err
}
