// SPDX-License-Identifier: Apache-2.0

// Package ctl is the command-line tool `trainyard`: it shows incidents with their whole story, answers questions,
// stops and resumes. It speaks to the actuator's REST interface and to nothing else; it never touches a switch or the
// journal. Installed under the name kubectl-trainyard it is a kubectl plugin.
package ctl

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Environment is what the tool takes from its process.
type Environment struct {
	Name    string // argv[0]
	Args    []string
	Out     io.Writer
	Err     io.Writer
	Getenv  func(string) string
	Version string
}

// Main runs the tool and returns its exit code.
func Main(ctx context.Context, env Environment) int {
	root := New(env)
	root.SetArgs(env.Args)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(env.Err, "%s: %v\n", root.CommandPath(), err)
		if exitCode(err) == exitUsage {
			fmt.Fprintf(env.Err, "See '%s --help'.\n", root.CommandPath())
		}
	}
	return exitCode(err)
}

// tool is what all commands share.
type tool struct {
	server    string
	tokenFile string
	env       Environment
}

func (t *tool) client() (*client, error) { return newClient(t.server, t.tokenFile) }

const exitCodes = `Exit codes: 0 done; 1 failed; 2 wrong usage; 3 no such incident; 4 refused by the actuator
(wrong state, no right); 5 the actuator cannot be reached or is not ready.`

// New builds the root command.
func New(env Environment) *cobra.Command {
	if env.Getenv == nil {
		env.Getenv = os.Getenv
	}
	t := &tool{env: env}
	root := &cobra.Command{
		Use:           "trainyard",
		Short:         "See and steer what the trainyard actuator does",
		Long:          "See and steer what the trainyard actuator does to relieve congested links.\n\n" + exitCodes,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	if plugin, ok := strings.CutPrefix(filepath.Base(env.Name), "kubectl-"); ok {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + strings.TrimSuffix(plugin, ".exe")}
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{exitUsage, err} })
	flags := root.PersistentFlags()
	flags.StringVar(&t.server, "server", or(env.Getenv("TRAINYARD_SERVER"), "http://127.0.0.1:9610"), "address of the actuator (environment: TRAINYARD_SERVER)")
	flags.StringVar(&t.tokenFile, "token-file", env.Getenv("TRAINYARD_TOKEN_FILE"), "file with the bearer token (environment: TRAINYARD_TOKEN_FILE)")
	root.AddCommand(t.incidents(), t.explain(), t.answer("approve"), t.answer("deny"), t.letGo(), t.stop(), t.resume(), t.shadow(), t.version())
	for _, c := range append(root.Commands(), root) {
		c.Args = usage(c.Args)
	}
	return root
}

// usage gives errors of an argument check the exit code of wrong usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check == nil {
			return nil
		}
		if err := check(c, args); err != nil {
			return &exitError{exitUsage, err}
		}
		return nil
	}
}

func or(s, instead string) string {
	if s != "" {
		return s
	}
	return instead
}
