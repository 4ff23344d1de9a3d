// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Secret says where a secret is, and holds it once it has been read. It prints as <secret>.
type Secret struct {
	File string `yaml:"file"`
	Env  string `yaml:"env"`
	text string
}

// NewSecret makes a secret of a text at hand, for programs that have no file.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal returns the secret itself. Only the client that sends it calls this.
func (s Secret) Reveal() string { return s.text }

// String hides the secret.
func (s Secret) String() string {
	if s == (Secret{}) {
		return ""
	}
	return "<secret>"
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// MarshalYAML hides the secret in a printed configuration.
func (s Secret) MarshalYAML() ([]byte, error) { return []byte(fmt.Sprintf("%q", s.String())), nil }

func (s Secret) validate() error {
	switch {
	case s.File != "" && s.Env != "":
		return errors.New("file and env exclude each other")
	case s == (Secret{}):
		return errors.New("needs file or env")
	}
	return nil
}

// load reads the secret; one line end after it does not count.
func (s Secret) load() (Secret, error) {
	switch {
	case s.File != "":
		b, err := os.ReadFile(s.File)
		if err != nil {
			return s, fmt.Errorf("read secret: %w", err)
		}
		s.text = strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	case s.Env != "":
		s.text = os.Getenv(s.Env)
	}
	if s.text == "" && s != (Secret{}) {
		return s, fmt.Errorf("the secret in %s%s is empty", s.File, s.Env)
	}
	return s, nil
}

// validate names the field in its error, as the end of a YAML path.
func (c Credentials) validate() error {
	switch c.Version {
	case V2c:
		if err := c.Community.validate(); err != nil {
			return fmt.Errorf(".community: %w", err)
		}
		if c.User != "" || c.Auth != "" || c.Priv != "" {
			return errors.New(".version: user, auth and priv belong to v3")
		}
		return nil
	case V3:
	default:
		return fmt.Errorf(".version: %q, want v2c or v3", c.Version)
	}
	switch {
	case c.User == "":
		return errors.New(".user: empty")
	case c.Community != (Secret{}):
		return errors.New(".community: belongs to v2c")
	case c.Auth != "" && !slices.Contains(AuthProtocols, c.Auth):
		return fmt.Errorf(".auth: %q, want one of %v", c.Auth, AuthProtocols)
	case c.Priv != "" && !slices.Contains(PrivProtocols, c.Priv):
		return fmt.Errorf(".priv: %q, want one of %v", c.Priv, PrivProtocols)
	case c.Priv != "" && c.Auth == "":
		return errors.New(".priv: needs auth")
	}
	for _, s := range []struct {
		field, protocol string
		secret          Secret
	}{{"auth_pass", c.Auth, c.AuthPass}, {"priv_pass", c.Priv, c.PrivPass}} {
		if s.protocol == "" {
			if s.secret != (Secret{}) {
				return fmt.Errorf(".%s: without a protocol", s.field)
			}
			continue
		}
		if err := s.secret.validate(); err != nil {
			return fmt.Errorf(".%s: %w", s.field, err)
		}
	}
	return nil
}

// load reads the secrets. RFC 3414 wants passphrases of at least 8 characters, and agents refuse shorter ones without
// a word.
func (c Credentials) load() (Credentials, error) {
	var errs [3]error
	c.Community, errs[0] = c.Community.load()
	c.AuthPass, errs[1] = c.AuthPass.load()
	c.PrivPass, errs[2] = c.PrivPass.load()
	for i, s := range []Secret{{}, c.AuthPass, c.PrivPass} {
		if s != (Secret{}) && errs[i] == nil && len(s.text) < 8 {
			errs[i] = fmt.Errorf("the passphrase in %s%s has fewer than 8 characters", s.File, s.Env)
		}
	}
	return c, errors.Join(errs[:]...)
}
