// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"errors"
	"fmt"
)

// Exit codes, for scripts. The help of the root command names them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
)

// exitError is an error with the exit code that it asks for.
type exitError struct {
	code int
	err  error
}

// Error is the message of the cause.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitFailed
}
