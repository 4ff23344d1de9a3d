// SPDX-License-Identifier: Apache-2.0

// Package rules holds the recording and alerting rules: one set of templates, rendered for two profiles. The rendered
// files are committed and embedded; Render makes them anew, and a test says when they are out of date. Nothing here
// evaluates a rule: Prometheus does.
//
// The templates use << >> for what differs between profiles, since Prometheus itself owns {{ }}.
package rules

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"text/template"
)

//go:generate go run ./cmd/render -dir .

//go:embed templates/*.tmpl
var templates embed.FS

//go:embed production/*.yaml lab/*.yaml
var rendered embed.FS

// Files returns the committed rule files of a profile by file name.
func Files(profile string) (map[string][]byte, error) {
	entries, err := fs.ReadDir(rendered, profile)
	if err != nil {
		return nil, fmt.Errorf("rules of profile %q: want production or lab: %w", profile, err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		content, err := rendered.ReadFile(path.Join(profile, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("rules of profile %q: %w", profile, err)
		}
		files[e.Name()] = content
	}
	return files, nil
}

// Render makes the rule files of a profile from the templates.
func Render(p Profile) (map[string][]byte, error) {
	t, err := template.New("rules").Delims("<<", ">>").Option("missingkey=error").Funcs(template.FuncMap{
		"one": one, "behind": behind,
	}).ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("parse rule templates: %w", err)
	}
	files := map[string][]byte{}
	for _, u := range t.Templates() {
		name, ok := strings.CutSuffix(u.Name(), ".tmpl")
		if !ok {
			continue // the empty root
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "# Made by go run ./rules/cmd/render from rules/templates/%s.tmpl for the %s profile. Edit that.\n", name, p.Name)
		if err := u.Execute(&b, p); err != nil {
			return nil, fmt.Errorf("render rules for profile %s: %w", p.Name, err)
		}
		files[name] = b.Bytes()
	}
	return files, nil
}

// one is the expression of the info series of a metric, one for each combination of the labels in all, without those
// that do not name exactly one object: where two series share the labels in key, neither counts. Otherwise one port
// with two neighbours would make the join of every link fail.
func one(key, all, selector string) string {
	g := fmt.Sprintf("group by (%s) (%s)", all, selector)
	return fmt.Sprintf("(%s unless on (%s) (count by (%s) (%s) > 1))", g, key, key, g)
}

// behind is the expression of the worst value that a signal has at the access ports behind each live link: those of
// the link's own leaf for an uplink, those of the leaf at its far end for a downlink, the port itself for an access
// link. The signal has the labels fabric, switch and port.
func behind(signal string) string {
	leaf := fmt.Sprintf("max by (fabric, switch) (%s)", signal)
	return fmt.Sprintf(`max by (fabric, link) (
            link:live:info{direction="up"} * on (fabric, switch) group_left () %[1]s
          or
            link:live:info{direction="down"} * on (fabric, peer) group_left () label_replace(%[1]s, "peer", "$1", "switch", "(.+)")
          or
            link:live:info{direction="access"} * on (fabric, switch, port) group_left () %[2]s
          )`, leaf, signal)
}
