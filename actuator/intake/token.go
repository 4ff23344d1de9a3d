// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Small readers of one JSON value each. All of them name the place in their errors, and none takes null for anything.

func at(place string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", place, err)
}

func wrong(place, want string, got jsontext.Kind) error {
	if got == 0 {
		return fmt.Errorf("%s: unreadable, want %s", place, want)
	}
	return fmt.Errorf("%s: %s, want %s", place, got, want)
}

// object reads an object and calls field after each name; field reads the value.
func object(dec *jsontext.Decoder, place string, field func(name string) error) error {
	if k := dec.PeekKind(); k != '{' {
		if k == 0 {
			if _, err := dec.ReadToken(); err != nil {
				return fmt.Errorf("not a JSON object: %w", err)
			}
		}
		return wrong(place+"/", "an object", k)
	}
	if _, err := dec.ReadToken(); err != nil {
		return at(place+"/", err)
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return at(place+"/", err)
		}
		if err := field(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken() // '}', or why there is none
	return at(place+"/", err)
}

func text(dec *jsontext.Decoder, place string) (string, error) {
	if k := dec.PeekKind(); k != '"' {
		return "", wrong(place, "a string", k)
	}
	t, err := dec.ReadToken()
	if err != nil {
		return "", at(place, err)
	}
	return t.String(), nil
}

func count(dec *jsontext.Decoder, place string) (int, error) {
	if k := dec.PeekKind(); k != '0' {
		return 0, wrong(place, "a number", k)
	}
	t, err := dec.ReadToken()
	if err != nil {
		return 0, at(place, err)
	}
	n, err := strconv.Atoi(t.String())
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %.40s is no count", place, t.String())
	}
	return n, nil
}

// texts reads an object of strings.
func texts(dec *jsontext.Decoder, place string) (map[string]string, error) {
	m := map[string]string{}
	err := object(dec, place, func(name string) error {
		if len(m) == maxLabels {
			return fmt.Errorf("%s: more than %d", place, maxLabels)
		}
		v, err := text(dec, place+"/"+name)
		if err == nil && v != "" { // an empty label is the same as none
			m[name] = v
		}
		return err
	})
	return m, err
}

func moment(dec *jsontext.Decoder, place string) (time.Time, error) {
	s, err := text(dec, place)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %.40q is no time", place, s)
	}
	return t, nil
}

func skip(dec *jsontext.Decoder, place string) error { return at(place, dec.SkipValue()) }
