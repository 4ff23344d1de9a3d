// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/plan"
)

const (
	dialTimeout  = 2 * time.Second // below start_wait, so that the first reconcile can already say why
	retryEvery   = time.Second     // FRR refuses connections for about as long after the end of a session
	writeTimeout = 5 * time.Second // to the leaf's socket: a full send buffer for so long is a dead leaf
)

// session is one BGP session with one leaf. It makes the connection, stands between the embedded speaker and the
// leaf, and reads along: what was written to this connection (out) is the truth about what the leaf was told, and for
// weights what the leaf says about its own paths (feed) is the truth about what is still alive.
type session struct {
	leaf     Leaf
	kind     plan.Kind
	cfg      *Config
	password string
	guard    *guard
	breaker  *breaker
	speaker  *speaker
	log      *slog.Logger
	retry    time.Duration

	// held is what the speaker holds. It is guarded by its own lock, which is taken before mu and held over calls of the
	// speaker, never while waiting for the wire.
	heldMu sync.Mutex
	held   map[netip.Prefix]plan.Route

	mu       sync.Mutex
	changed  chan struct{} // closed and made anew when something below changes
	up       bool
	replayed bool      // End-of-RIB was sent
	since    time.Time // of up, or of down
	wasUp    bool      // was up at any time
	purged   bool      // what the leaf lost in this outage has been forgotten
	why      error     // why it is not up
	conn     net.Conn  // to the leaf
	out      table
	feed     table
	leafCaps openCaps
	heard    [2]bool // a KEEPALIVE from the speaker and from the leaf: each accepts the other's OPEN
	keep     bool    // closing: no NOTIFICATION reaches the leaf
	cutting  error   // why we close it ourselves
}

func newSession(cfg *Config, leaf Leaf, kind plan.Kind, password string, g *guard, b *breaker, sp *speaker, log *slog.Logger) *session {
	return &session{
		leaf: leaf, kind: kind, cfg: cfg, password: password, guard: g, breaker: b, speaker: sp, retry: retryEvery,
		log: log.With("leaf", leaf.Name, "session", string(kind)), held: map[netip.Prefix]plan.Route{},
		changed: make(chan struct{}), out: table{}, feed: table{}, why: errors.New("it has not been up yet"), since: time.Now(),
	}
}

// name says which session it is, for errors.
func (s *session) name() string {
	what := "pins"
	if s.kind == plan.Weights {
		what = "weights"
	}
	return fmt.Sprintf("session for %s with leaf %s at %s", what, s.leaf.Name, s.leaf.Address)
}

// run keeps the session up until ctx ends. It never connects while the guard is closed.
func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.guard.check()
		if err == nil {
			err = s.once(ctx)
		}
		s.down(ctx, err)
		select {
		case <-ctx.Done():
		case <-time.After(s.retry):
		}
	}
}

// once is the life of one connection: dial the leaf, introduce it to the speaker, relay until one side ends it.
func (s *session) once(ctx context.Context) error {
	leaf, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer leaf.Close()
	// The leaf's side is closed first, so that nothing that the speaker says at its end (a NOTIFICATION would end graceful
	// restart) can reach it.
	defer s.speaker.disconnect()
	defer leaf.Close()
	local, err := s.speaker.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect the embedded speaker: %w", err)
	}
	defer local.Close()

	s.update(func() {
		s.conn, s.cutting, s.out, s.feed, s.replayed, s.heard = leaf, nil, table{}, table{}, false, [2]bool{}
	})
	stop := context.AfterFunc(ctx, func() { leaf.Close(); local.Close() })
	defer stop()

	errs := make(chan error, 2)
	go func() { errs <- s.relayOut(local, leaf) }()
	go func() { errs <- s.relayIn(leaf, local) }()
	first := <-errs
	leaf.Close()
	local.Close()
	second := <-errs // which mostly only follows from the first
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutting != nil {
		return s.cutting
	}
	return cmp.Or(first, second)
}

func (s *session) dial(ctx context.Context) (net.Conn, error) {
	port := s.leaf.Port
	if port == 0 {
		port = bgp.BGP_PORT
	}
	to := netip.AddrPortFrom(s.leaf.Address, port)
	d := net.Dialer{
		Timeout: dialTimeout, KeepAlive: -1, Control: secure(s.leaf.Address, s.password, s.cfg.TTLSecurityHops),
		LocalAddr: &net.TCPAddr{IP: s.cfg.session(s.kind).LocalAddress.AsSlice()},
	}
	c, err := d.DialContext(ctx, "tcp4", to.String())
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() && s.password != "" {
		// A kernel drops a SYN with a wrong signature without a word, so this cannot be told apart further.
		return nil, fmt.Errorf("connect to %s: no answer to a SYN signed with the password: wrong password, no such neighbour on the leaf, or no way there: %w", to, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to %s from %s: %w", to, s.cfg.session(s.kind).LocalAddress, err)
	}
	return c, nil
}

// relayOut passes messages from the speaker to the leaf. Each that may change the leaf's routes asks the guard first,
// except withdrawals: those are always allowed (field rule 15).
func (s *session) relayOut(local, leaf net.Conn) error {
	for {
		msg, err := readMessage(local)
		if err != nil {
			return fmt.Errorf("the embedded speaker ended the session: %w", err)
		}
		var u *bgp.BGPUpdate
		switch messageType(msg) {
		case bgp.BGP_MSG_OPEN:
			err = s.guard.check()
		case bgp.BGP_MSG_KEEPALIVE:
			s.keepalive(0)
		case bgp.BGP_MSG_UPDATE:
			if u, err = parseUpdate(msg, s.caps().addPath&bgp.BGP_ADD_PATH_RECEIVE != 0 && s.kind == plan.Weights); err != nil {
				return fmt.Errorf("read an UPDATE of the embedded speaker: %w", err)
			}
			if len(u.NLRI) > 0 || len(u.WithdrawnRoutes) == 0 { // announces, or is End-of-RIB
				err = s.guard.check()
			}
		case bgp.BGP_MSG_NOTIFICATION:
			s.mu.Lock()
			keep := s.keep
			s.mu.Unlock()
			if keep {
				return errors.New("closed, routes are kept")
			}
			s.setCutting(fmt.Errorf("we ended the session: %s", notification(msg)))
		}
		if err != nil {
			s.setCutting(fmt.Errorf("closed by ourselves: %w", err))
			return err
		}
		if err := leaf.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := leaf.Write(msg); err != nil {
			return fmt.Errorf("write to the leaf: %w", err)
		}
		if u != nil {
			eor, _ := u.IsEndOfRib()
			s.update(func() { s.out.update(u); s.replayed = s.replayed || eor })
		}
	}
}

// relayIn passes messages from the leaf to the speaker.
func (s *session) relayIn(leaf, local net.Conn) error {
	for {
		msg, err := readMessage(leaf)
		if err != nil {
			return fmt.Errorf("the leaf ended the connection: %w", err)
		}
		switch messageType(msg) {
		case bgp.BGP_MSG_OPEN:
			caps, err := parseOpen(msg)
			if err != nil {
				return fmt.Errorf("read the leaf's OPEN: %w", err)
			}
			s.update(func() { s.leafCaps = caps })
		case bgp.BGP_MSG_KEEPALIVE:
			s.keepalive(1)
		case bgp.BGP_MSG_UPDATE:
			if s.kind == plan.Weights {
				// An UPDATE that cannot be read is left to the speaker, which resets the session by the rules of RFC 7606.
				if u, err := parseUpdate(msg, s.caps().addPath&bgp.BGP_ADD_PATH_SEND != 0); err == nil {
					s.update(func() { s.feed.update(u) })
					s.dropDead()
				}
			}
		case bgp.BGP_MSG_NOTIFICATION:
			s.setCutting(fmt.Errorf("the leaf ended the session: %s", notification(msg)))
		}
		if _, err := local.Write(msg); err != nil {
			return fmt.Errorf("pass a message to the embedded speaker: %w", err)
		}
	}
}

// dropDead withdraws each weighted route of which the leaf has lost a path (field rule 1): what is left of the fabric
// carries the traffic by the leaf's own ECMP. Coming back is a decision, and not made here. It needs no permit.
func (s *session) dropDead() {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	for _, r := range s.held {
		if err := s.liveAll(r); err != nil {
			s.log.Warn("withdraw a weighted route: a path of it is gone", "route", r.String(), "reason", err.Error())
			if err := s.removeLocked(r.Prefix); err != nil {
				s.log.Error("withdraw a weighted route", "route", r.String(), "error", err)
			}
		}
	}
}

// liveAll returns nil if the leaf has a path to the route's prefix through each next hop.
func (s *session) liveAll(r plan.Route) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.liveAllLocked(r)
}

func (s *session) liveAllLocked(r plan.Route) error {
	for _, h := range r.NextHops {
		if !s.feed.live(r.Prefix, h.Addr) {
			hint := ""
			if s.leafCaps.addPath&bgp.BGP_ADD_PATH_SEND == 0 {
				hint = "; it sends only its best path to us: addpath-tx-all-paths is missing there"
			}
			return fmt.Errorf("leaf %s has no path to %s through %s%s", s.leaf.Name, r.Prefix, h.Addr, hint)
		}
	}
	return nil
}

// set gives a route to the speaker; removeLocked takes it back. heldMu must be held.
func (s *session) setLocked(r plan.Route) error {
	var before *plan.Route
	if b, ok := s.held[r.Prefix]; ok {
		before = &b
	}
	if err := s.speaker.set(r, before); err != nil {
		return err
	}
	s.held[r.Prefix] = r
	return nil
}

func (s *session) removeLocked(ps ...netip.Prefix) error {
	var rs []plan.Route
	for _, p := range ps {
		if r, ok := s.held[p]; ok {
			rs = append(rs, r)
		}
	}
	if err := s.speaker.remove(rs...); err != nil {
		return err
	}
	for _, p := range ps {
		delete(s.held, p)
	}
	return nil
}

// holds says whether the speaker holds a route for p.
func (s *session) holds(p netip.Prefix) bool {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	_, ok := s.held[p]
	return ok
}

// prime makes what a session replays when it comes up equal to desired. On a session that is up it only forgets what the leaf
// was never told; everything else is for Apply and Withdraw.
func (s *session) prime(desired []plan.Route) error {
	want := map[netip.Prefix]plan.Route{}
	for _, r := range desired {
		want[r.Prefix] = r
	}
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	s.mu.Lock()
	up, out := s.up, maps.Clone(s.out)
	s.mu.Unlock()
	var errs []error
	for p, r := range s.held {
		if w, ok := want[p]; (ok && act.Same(w, r)) || (up && len(out[p]) > 0) {
			continue
		}
		errs = append(errs, s.removeLocked(p))
	}
	// Weights have no graceful restart: nothing of them is on the leaf, and whether their paths are alive is known only later.
	if up || s.kind == plan.Weights || s.breaker.check(time.Now()) != nil {
		return errors.Join(errs...)
	}
	for p, r := range want {
		if _, ok := s.held[p]; !ok {
			errs = append(errs, s.setLocked(r))
		}
	}
	return errors.Join(errs...)
}

// down notes the end of a connection. A session that was up and that we did not end ourselves has flapped.
func (s *session) down(ctx context.Context, err error) {
	now := time.Now()
	s.mu.Lock()
	wasUp, out := s.up, s.out
	ours := s.guard.check() != nil || ctx.Err() != nil
	if s.why == nil || err == nil || s.why.Error() != err.Error() || wasUp {
		s.log.Info("session is down", "was_up", wasUp, "reason", fmt.Sprint(err))
	}
	s.up, s.why, s.conn = false, err, nil
	if wasUp {
		s.since = now
	}
	s.out, s.feed = table{}, table{}
	// Weights go with the session; pins stay on the leaf for the restart time. After that the leaf holds nothing more.
	gone := !s.purged && s.wasUp && (s.kind == plan.Weights || now.Sub(s.since) > s.cfg.RestartTime)
	s.purged = s.purged || gone
	s.notify()
	s.mu.Unlock()

	if wasUp && !ours {
		s.breaker.trip(now, fmt.Sprintf("the %s ended: %v", s.name(), err))
	}
	if ctx.Err() != nil {
		return
	}
	// What the leaf was never told, or holds no more, must not come back by itself when the session does.
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	for p := range s.held {
		if gone || wasUp && len(out[p]) == 0 {
			if err := s.removeLocked(p); err != nil {
				s.log.Error("forget a route", "prefix", p, "error", err)
			}
		}
	}
}

// cut ends the connection without a NOTIFICATION, so that the leaf treats it as a restart.
func (s *session) cut(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		if s.cutting == nil {
			s.cutting = fmt.Errorf("closed by ourselves: %w", why)
		}
		s.conn.Close()
	}
}

// keepalive notes that one side, 0 the speaker and 1 the leaf, has sent a KEEPALIVE. When both have, the session is up.
func (s *session) keepalive(side int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[side] = true
	if !s.up && s.heard[0] && s.heard[1] {
		s.up, s.wasUp, s.purged, s.since, s.why = true, true, false, time.Now(), nil
		s.log.Info("session is up", "graceful_restart", s.leafCaps.restart && s.kind == plan.Pin)
		s.notify()
	}
}

func (s *session) setCutting(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutting == nil {
		s.cutting = err
	}
}

func (s *session) caps() openCaps {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leafCaps
}

func (s *session) update(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.notify()
}

// notify wakes everybody who waits for a change. mu must be held.
func (s *session) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait calls ok, with mu held, after each change until it returns true or ctx ends.
func (s *session) wait(ctx context.Context, ok func() bool) {
	for {
		s.mu.Lock()
		if ok() {
			s.mu.Unlock()
			return
		}
		ch := s.changed
		s.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return
		}
	}
}
