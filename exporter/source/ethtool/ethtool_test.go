// SPDX-License-Identifier: Apache-2.0

package ethtool

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/trainyard/trainyard/exporter/prom"
	"github.com/trainyard/trainyard/exporter/source"
)

func fake(stats map[string]map[string]uint64) *Source {
	s := New("n1", regexp.MustCompile(`rail\d`))
	s.list = func() ([]string, error) { return []string{"lo", "rail0", "rail1", "rail2", "rail12"}, nil }
	s.stats = func(device string) (map[string]uint64, error) {
		m, ok := stats[device]
		switch {
		case !ok:
			return nil, errUnsupported
		case m == nil:
			return nil, errors.New("EINVAL")
		}
		return m, nil
	}
	return s
}

// mlx5 counts microseconds: 2,500,000 of them are 2.5 seconds. Frames (rx_prio3_pause, tx_prio3_pause,
// rx_pfc_ena_frames_pri3) are no time, and what the switch told us to stop (rx_) is not what we told it.
func TestPausesByHand(t *testing.T) {
	s := fake(map[string]map[string]uint64{
		"rail0":  {"tx_prio3_pause_duration": 2_500_000, "tx_prio3_pause": 77, "rx_prio3_pause_duration": 5, "rx_prio3_pause": 9, "tx_global_pause_duration": 0},
		"rail1":  {"pfc_pri5_tx_duration_us": 1, "rx_pfc_ena_frames_pri3": 4, "pfc_pri8_tx_duration_us": 3},
		"rail12": {"tx_prio3_pause_duration": 9},
		"lo":     {"tx_prio3_pause_duration": 9},
	})
	samples, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := `trainyard_nic_transmit_pause_seconds_total{node="n1",device="rail0",priority="3"} 2.5
trainyard_nic_transmit_pause_seconds_total{node="n1",device="rail0",priority="global"} 0
trainyard_nic_transmit_pause_seconds_total{node="n1",device="rail1",priority="5"} 1e-06
`
	if _, got, _ := strings.Cut(string(prom.Render(samples)), "counter\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOneDriverDoesNotSpoilTheOthers(t *testing.T) {
	samples, err := fake(map[string]map[string]uint64{"rail0": nil, "rail1": {"pfc_pri5_tx_duration_us": 1}}).Read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "rail0") || len(samples) != 1 {
		t.Errorf("got %v, %v", samples, err)
	}
}

func TestNothingOfTheKindIsAbsent(t *testing.T) {
	if _, err := fake(map[string]map[string]uint64{"rail0": {"rx_queue_0_xdp_packets": 1}}).Read(t.Context()); !errors.Is(err, source.ErrAbsent) {
		t.Errorf("got %v", err)
	}
}

// Whatever devices this machine has, asking their drivers does not fail: loopback has no statistics at all.
func TestThisMachine(t *testing.T) {
	devices, err := deviceNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		if _, err := statistics(d); err != nil && !errors.Is(err, errUnsupported) {
			t.Errorf("device %s: %v", d, err)
		}
	}
	if _, err := statistics("nothing-here"); err == nil {
		t.Error("a device that is not there has statistics")
	}
	if _, err := statistics(strings.Repeat("x", 99)); err == nil {
		t.Error("a name too long for the kernel was accepted")
	}
}
