// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

func beRank() {}

func labMissing() error {
	return errors.New("network namespaces need Linux")
}

func newLab(context.Context, io.Writer, string, binaries) (yard, error) { return nil, labMissing() }
