// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io"
	"log/slog"
)

func (l Log) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return 0, fmt.Errorf("%q is none of debug, info, warn, error", l.Level)
	}
	return level, nil
}

// Logger makes the logger that the section describes. A level that Validate refused counts as info.
func (l Log) Logger(w io.Writer) *slog.Logger {
	level, err := l.level()
	if err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
