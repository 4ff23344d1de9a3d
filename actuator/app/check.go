// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/trainyard/trainyard/actuator/act"
	"github.com/trainyard/trainyard/actuator/act/bgp"
	"github.com/trainyard/trainyard/actuator/config"
)

// Check builds what a configuration describes as far as that disturbs nobody: it opens no port, no session and no
// journal, since an actuator may be running with all of them.
func Check(cfg config.Config) error {
	_, err := buildParts(cfg)
	errs := []error{err}
	if cfg.Web.TLSCertFile != "" {
		if _, err := tls.LoadX509KeyPair(cfg.Web.TLSCertFile, cfg.Web.TLSKeyFile); err != nil {
			errs = append(errs, fmt.Errorf("load TLS certificate: %w", err))
		}
	}
	errs = append(errs, checkFolder("journal_dir", cfg.JournalDir), checkFolder("stop_file", filepath.Dir(cfg.StopFile)))
	if cfg.Driver.Kind == config.BGP {
		never := act.PermitFunc(func(time.Time) error { return errors.New("only a check") })
		d, err := bgp.New(cfg.Driver.BGP, never, slog.New(slog.DiscardHandler))
		if err == nil {
			err = d.Close(context.Background(), true)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("$.driver.bgp: %w", err))
		}
	}
	return errors.Join(errs...)
}

// checkFolder says whether a folder is there or can be made.
func checkFolder(key, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		parent, err := os.Stat(filepath.Dir(dir))
		if err != nil || !parent.IsDir() {
			return fmt.Errorf("$.%s: neither %s nor the folder that it would be made in is there", key, dir)
		}
		return nil
	case err != nil:
		return fmt.Errorf("$.%s: %w", key, err)
	case !info.IsDir():
		return fmt.Errorf("$.%s: %s is not a folder", key, dir)
	}
	return nil
}
