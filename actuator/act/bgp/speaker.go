// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"github.com/osrg/gobgp/v4/pkg/server"

	"github.com/trainyard/trainyard/actuator/plan"
)

// speaker is one embedded GoBGP server: it holds the routes that are to be announced, speaks the protocol, and knows
// nothing of the switch's address. It never dials: GoBGP reconnects on its own timers and announces whatever it holds,
// asking nobody [measured: 6.8 s after SIGCONT]. So it listens on loopback, under a random TCP MD5 password that nobody
// else knows, and the session hands it a connection when one may exist.
type speaker struct {
	server *server.BgpServer
	port   int
	secret string
	asn    uint32
	kind   plan.Kind
	cfg    *Config
	active chan struct{} // receives when the peer is ready to take a connection
}

var loopback = netip.MustParseAddr("127.0.0.1")

// newSpeaker starts a server without a peer. Servers must be started one after the other and before the first peer:
// GoBGP keeps its route selection options in package variables that it writes at each start.
func newSpeaker(cfg *Config, leaf Leaf, kind plan.Kind, log *slog.Logger) (*speaker, error) {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	// GoBGP reports each message at its info level; only what it calls an error is news here, since the session says more.
	lvl := &slog.LevelVar{}
	lvl.Set(slog.LevelError)
	s := &speaker{secret: hex.EncodeToString(b), asn: leaf.ASN, kind: kind, cfg: cfg, active: make(chan struct{}, 1)}
	var err error
	for range 5 { // another process may take the port between asking for a free one and using it
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
		srv := server.NewBgpServer(server.LoggerOption(slog.New(atLeast{log.Handler(), lvl}), lvl))
		go srv.Serve()
		err = srv.StartBgp(context.Background(), &api.StartBgpRequest{Global: &api.Global{
			Asn: leaf.ASN, RouterId: cfg.session(kind).LocalAddress.String(),
			ListenPort: int32(s.port), ListenAddresses: []string{loopback.String()},
		}})
		if err == nil {
			s.server = srv
			break
		}
		srv.Stop()
	}
	if err != nil {
		return nil, fmt.Errorf("start the BGP speaker for the %s of leaf %s: %w", kind, leaf.Name, err)
	}
	return s, s.server.WatchEvent(context.Background(), server.WatchEventMessageCallbacks{OnPeerUpdate: func(p *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
		if p.Type == apiutil.PEER_EVENT_STATE && p.Peer.State.SessionState == bgp.BGP_FSM_ACTIVE {
			select {
			case s.active <- struct{}{}:
			default:
			}
		}
	}}, server.WatchPeer())
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(loopback.String(), "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free loopback port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// connect makes a fresh peer and returns the connection with it. Each session has its own peer, so that each begins
// exactly as after a restart of the process: everything that is held is replayed, then End-of-RIB.
func (s *speaker) connect(ctx context.Context) (net.Conn, error) {
	select {
	case <-s.active:
	default:
	}
	t := s.cfg.session(s.kind)
	family := &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	af := &api.AfiSafi{Config: &api.AfiSafiConfig{Family: family, Enabled: true}}
	peer := &api.Peer{
		Conf:      &api.PeerConf{NeighborAddress: loopback.String(), PeerAsn: s.asn, AuthPassword: s.secret},
		Timers:    &api.Timers{Config: &api.TimersConfig{HoldTime: uint64(t.HoldTime / time.Second), KeepaliveInterval: uint64(t.Keepalive / time.Second)}},
		Transport: &api.Transport{PassiveMode: true},
		AfiSafis:  []*api.AfiSafi{af},
	}
	if s.kind == plan.Weights {
		af.AddPaths = &api.AddPaths{Config: &api.AddPathsConfig{SendMax: uint32(s.cfg.MaxNextHops), Receive: true}}
	} else {
		// LocalRestarting sets the restart and forwarding bits in OPEN (RFC 4724, 3): without them the leaf drops the routes that
		// it kept. It also holds our routes back until the leaf's End-of-RIB, or for the deferral time with a leaf that sends none.
		af.MpGracefulRestart = &api.MpGracefulRestart{Config: &api.MpGracefulRestartConfig{Enabled: true}}
		peer.GracefulRestart = &api.GracefulRestart{
			Enabled: true, RestartTime: uint32(s.cfg.RestartTime / time.Second), DeferralTime: 2, LocalRestarting: true,
		}
	}
	if err := s.server.AddPeer(ctx, &api.AddPeerRequest{Peer: peer}); err != nil {
		return nil, fmt.Errorf("add the peer: %w", err)
	}
	select {
	case <-s.active:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(5 * time.Second):
		return nil, errors.New("the embedded speaker did not become ready")
	}
	d := net.Dialer{Timeout: 2 * time.Second, Control: secure(loopback, s.secret, 0)}
	return d.DialContext(ctx, "tcp4", net.JoinHostPort(loopback.String(), fmt.Sprint(s.port)))
}

// disconnect removes the peer; the routes stay in the speaker.
func (s *speaker) disconnect() {
	// The only error is that there is no such peer.
	_ = s.server.DeletePeer(context.Background(), &api.DeletePeerRequest{Address: loopback.String()})
}

// set makes r the route of its prefix. before is the route that stood there, nil if none.
func (s *speaker) set(r plan.Route, before *plan.Route) error {
	now, err := paths(r, s.asn)
	if err != nil {
		return err
	}
	rs, err := s.server.AddPath(apiutil.AddPathRequest{Paths: now})
	if err != nil {
		return fmt.Errorf("give %s to the speaker: %w", r, err)
	}
	for _, r := range rs {
		if r.Error != nil {
			err = errors.Join(err, r.Error)
		}
	}
	if err != nil || before == nil {
		return err
	}
	old, err := paths(*before, s.asn)
	if err != nil || len(old) <= len(now) {
		return err
	}
	return s.server.DeletePath(apiutil.DeletePathRequest{Paths: old[len(now):]})
}

// remove withdraws routes, all of their path ids, in one go.
func (s *speaker) remove(rs ...plan.Route) error {
	var all []*apiutil.Path
	for _, r := range rs {
		ps, err := paths(r, s.asn)
		if err != nil {
			return err
		}
		all = append(all, ps...)
	}
	if len(all) == 0 {
		return nil
	}
	return s.server.DeletePath(apiutil.DeletePathRequest{Paths: all})
}

func (s *speaker) stop() { s.server.Stop() }

// atLeast hides records below the level that GoBGP was given.
type atLeast struct {
	slog.Handler
	level slog.Leveler
}

// Enabled implements slog.Handler.
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h atLeast) WithAttrs(as []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(as), h.level}
}

// WithGroup implements slog.Handler.
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
