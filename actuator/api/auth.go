// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Secret is a string that never shows itself.
type Secret string

// String hides the secret.
func (Secret) String() string { return "<secret>" }

// GoString hides the secret from %#v too.
func (Secret) GoString() string { return "<secret>" }

// MarshalText hides the secret in YAML and JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte("<secret>"), nil }

// Role is what a token is good for. Roles do not include each other, so that Alertmanager's token approves nothing.
type Role string

// The roles.
const (
	View    Role = "view"    // read incidents, reports and metrics
	Operate Role = "operate" // approve, deny, stop and resume
	Alert   Role = "alert"   // deliver alerts to the webhook
)

// Token is one line of the tokens file.
type Token struct {
	Actor string `yaml:"actor"` // who it is, as the journal names them
	Roles []Role `yaml:"roles"`
	Token Secret `yaml:"token"`
}

// minTokenLen keeps guessable tokens out: 20 characters of base64 are 120 bits.
const minTokenLen = 20

// LoadTokens reads a tokens file: YAML with one key, tokens.
func LoadTokens(path string) ([]Token, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read tokens file: %w", err)
	}
	var file struct {
		Tokens []Token `yaml:"tokens"`
	}
	if err := yaml.UnmarshalWithOptions(text, &file, yaml.Strict()); err != nil {
		// The library's message quotes the lines around the fault, and these hold tokens.
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			p := at.GetToken().Position
			return nil, fmt.Errorf("tokens file %s: line %d, column %d: %s", path, p.Line, p.Column, at.GetMessage())
		}
		return nil, fmt.Errorf("tokens file %s: not as expected", path)
	}
	var errs []error
	bad := func(i int, key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("tokens file %s: tokens[%d].%s: %s", path, i, key, fmt.Sprintf(format, args...)))
	}
	if len(file.Tokens) == 0 {
		errs = append(errs, fmt.Errorf("tokens file %s: tokens: empty", path))
	}
	for i, t := range file.Tokens {
		if t.Actor == "" || len(t.Actor) > 100 || strings.ContainsFunc(t.Actor, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			bad(i, "actor", "want 1 to 100 printable characters")
		}
		if len(t.Token) < minTokenLen {
			bad(i, "token", "%d characters, want at least %d", len(t.Token), minTokenLen)
		}
		if len(t.Roles) == 0 {
			bad(i, "roles", "empty")
		}
		for _, r := range t.Roles {
			if !slices.Contains([]Role{View, Operate, Alert}, r) {
				bad(i, "roles", "%q is none of %s, %s, %s", string(r), View, Operate, Alert)
			}
		}
		for j := range i {
			if file.Tokens[j].Token == t.Token {
				bad(i, "token", "the same as that of tokens[%d]", j)
			}
		}
	}
	return file.Tokens, errors.Join(errs...)
}

// LoopbackActor is who acts where no credentials are configured and everything listens on loopback.
const LoopbackActor = "loopback user"

// Identity is who a request comes from.
type Identity struct {
	Actor string
	Roles []Role
}

type identityKey struct{}

// actor is who acts in a request that the door has let through.
func actor(ctx context.Context) string {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id.Actor
}

// door decides who a request comes from and whether they may do what it asks.
type door struct {
	tokens map[[sha256.Size]byte]Identity // empty = loopback without credentials
}

func newDoor(tokens []Token) door {
	d := door{tokens: map[[sha256.Size]byte]Identity{}}
	for _, t := range tokens {
		d.tokens[sha256.Sum256([]byte(t.Token))] = Identity{t.Actor, t.Roles}
	}
	return d
}

// CheckListen refuses to listen beyond loopback without credentials (field rule 15).
func CheckListen(listen string, credentials bool) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("%q is not host:port", listen)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n < 0 {
		return fmt.Errorf("%q: port %q is none", listen, port)
	}
	if !credentials && !isLoopback(host) {
		return fmt.Errorf("%q is reachable from other machines and no credentials are configured: set web.tokens_file, or listen on 127.0.0.1", listen)
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// identify says who sent the request, or why they cannot be told.
func (d door) identify(r *http.Request) (Identity, error) {
	if len(d.tokens) == 0 {
		// A web page in a browser of this machine could have a name of its own resolved to 127.0.0.1 and talk to us.
		host := r.Host
		if h, _, err := net.SplitHostPort(r.Host); err == nil {
			host = h
		}
		if !isLoopback(strings.Trim(host, "[]")) {
			return Identity{}, fmt.Errorf("host %.100q: without credentials only loopback names are answered", r.Host)
		}
		return Identity{LoopbackActor, []Role{View, Operate, Alert}}, nil
	}
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return Identity{}, errors.New("no bearer token")
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for known, id := range d.tokens {
		if subtle.ConstantTimeCompare(known[:], sum[:]) == 1 {
			return id, nil
		}
	}
	return Identity{}, errors.New("unknown token")
}

// require wraps a handler: only identities with the role reach it.
func (d door) require(role Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, err := d.identify(r)
		if err != nil {
			if len(d.tokens) > 0 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="trainyard"`)
				problem(w, http.StatusUnauthorized, err.Error())
			} else {
				problem(w, http.StatusMisdirectedRequest, err.Error())
			}
			return
		}
		if !slices.Contains(id.Roles, role) {
			problem(w, http.StatusForbidden, fmt.Sprintf("%s lacks the role %s", id.Actor, role))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	})
}
