// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trainyard/trainyard/actuator/api/shadow"
	"github.com/trainyard/trainyard/actuator/flow"
)

// list is the answer of GET incidents.
type list struct {
	Incidents []flow.View `json:"incidents"`
}

// output adds the flag -o and returns its checked value.
func output(c *cobra.Command, usual string, formats ...string) func() (string, error) {
	var format string
	c.Flags().StringVarP(&format, "output", "o", usual, "output format: "+strings.Join(formats, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return func() (string, error) {
		if !slices.Contains(formats, format) {
			return "", usagef("--output %q: want one of %s", format, strings.Join(formats, ", "))
		}
		return format, nil
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func (t *tool) incidents() *cobra.Command {
	var open bool
	c := &cobra.Command{Use: "incidents", Aliases: []string{"incident"}, Short: "List incidents, newest first", Args: cobra.NoArgs}
	format := output(c, "table", "table", "json")
	c.Flags().BoolVar(&open, "open", false, "only incidents that are not over")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f, err := format()
		if err != nil {
			return err
		}
		cl, err := t.client()
		if err != nil {
			return err
		}
		query := url.Values{}
		if open {
			query.Set("open", "true")
		}
		var l list
		if err := cl.get(c.Context(), "incidents", query, &l); err != nil {
			return err
		}
		if f == "json" {
			return printJSON(c.OutOrStdout(), l)
		}
		return incidentTable(c.OutOrStdout(), l.Incidents)
	}
	return c
}

func (t *tool) explain() *cobra.Command {
	c := &cobra.Command{
		Use: "explain ID", Short: "Tell the whole story of an incident, also why nothing was done",
		Args: cobra.ExactArgs(1), ValidArgsFunction: t.completeIDs,
	}
	format := output(c, "text", "text", "json")
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := format()
		if err != nil {
			return err
		}
		cl, err := t.client()
		if err != nil {
			return err
		}
		var v flow.View
		if err := cl.get(c.Context(), "incidents/"+url.PathEscape(args[0]), nil, &v); err != nil {
			return err
		}
		if f == "json" {
			return printJSON(c.OutOrStdout(), v)
		}
		return explain(c.OutOrStdout(), v)
	}
	return c
}

// answer is approve and deny.
func (t *tool) answer(word string) *cobra.Command {
	return &cobra.Command{
		Use: word + " ID", Short: map[string]string{"approve": "Approve the plan of an incident that asks", "deny": "Deny the plan of an incident that asks"}[word],
		Args: cobra.ExactArgs(1), ValidArgsFunction: t.completeIDs,
		RunE: func(c *cobra.Command, args []string) error { return t.act(c, args[0], word) },
	}
}

func (t *tool) letGo() *cobra.Command {
	return &cobra.Command{
		Use: "release ID", Short: "Take an incident over, or give back one that was handed to you: its routes are withdrawn",
		Args: cobra.ExactArgs(1), ValidArgsFunction: t.completeIDs,
		RunE: func(c *cobra.Command, args []string) error { return t.act(c, args[0], "release") },
	}
}

func (t *tool) act(c *cobra.Command, id, word string) error {
	cl, err := t.client()
	if err != nil {
		return err
	}
	var done struct {
		Actor string `json:"actor"`
	}
	if err := cl.do(c.Context(), "POST", "incidents/"+url.PathEscape(id)+"/"+word, struct{}{}, &done); err != nil {
		return err
	}
	past := map[string]string{"approve": "approved", "deny": "denied", "release": "let go"}[word]
	fmt.Fprintf(c.OutOrStdout(), "%s: %s by %s\n", id, past, done.Actor)
	return nil
}

func (t *tool) stop() *cobra.Command {
	var withdraw bool
	c := &cobra.Command{
		Use: "stop", Short: "Take no new step until resume; never blocks an undo", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			var done struct {
				Actor string `json:"actor"`
			}
			if err := cl.do(c.Context(), "POST", "stop", map[string]bool{"withdraw": withdraw}, &done); err != nil {
				return err
			}
			what := "no new steps are taken; routes that stand remain"
			if withdraw {
				what = "no new steps are taken, and all routes are withdrawn"
			}
			fmt.Fprintf(c.OutOrStdout(), "stopped by %s: %s\n", done.Actor, what)
			return nil
		},
	}
	c.Flags().BoolVar(&withdraw, "withdraw", false, "also withdraw every route that was moved")
	return c
}

func (t *tool) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume", Short: "Lift a stop", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := t.client()
			if err != nil {
				return err
			}
			var done struct {
				Actor string `json:"actor"`
			}
			if err := cl.do(c.Context(), "DELETE", "stop", nil, &done); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "resumed by %s\n", done.Actor)
			return nil
		},
	}
}

func (t *tool) shadow() *cobra.Command {
	var since time.Duration
	c := &cobra.Command{
		Use: "shadow", Short: "Report what watch mode would have done, and how often it would have been right", Args: cobra.NoArgs,
	}
	c.Flags().DurationVar(&since, "since", 24*time.Hour, "how far to look back")
	format := output(c, "text", "text", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f, err := format()
		if err != nil {
			return err
		}
		if since <= 0 {
			return usagef("--since %s: want a positive duration", since)
		}
		cl, err := t.client()
		if err != nil {
			return err
		}
		var r shadow.Report
		if err := cl.get(c.Context(), "shadow", url.Values{"since": {since.String()}}, &r); err != nil {
			return err
		}
		if f == "json" {
			return printJSON(c.OutOrStdout(), r)
		}
		return shadowText(c.OutOrStdout(), r)
	}
	return c
}

func (t *tool) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this tool", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			fmt.Fprintln(c.OutOrStdout(), "trainyard", t.env.Version)
			return nil
		},
	}
}

// completeIDs offers the incidents that the actuator knows; without an actuator it offers nothing.
func (t *tool) completeIDs(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	cl, err := t.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var l list
	if err := cl.get(c.Context(), "incidents", nil, &l); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	for _, v := range l.Incidents {
		ids = append(ids, fmt.Sprintf("%s\t%s %s", v.ID, v.State, v.Target))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
