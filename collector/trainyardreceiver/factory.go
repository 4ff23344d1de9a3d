// SPDX-License-Identifier: Apache-2.0

package trainyardreceiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	otelreceiver "go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap/exp/zapslog"

	"github.com/trainyard/trainyard/exporter/app"
	"github.com/trainyard/trainyard/exporter/config"
)

// Type is the receiver's name in the configuration.
var Type = component.MustNewType("trainyard")

// Config is the receiver's part of the configuration. It says the same as the flags and the file of the exporter's node
// role; what is empty has the default that it has there.
type Config struct {
	// CollectionInterval is how often sources are read and the newest snapshot goes into the pipeline.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
	// NodeName is the node as Kubernetes has it; default: the host name.
	NodeName string `mapstructure:"node_name"`
	// File is a YAML configuration of the exporter's node role: devices, rails, fabric.
	File string `mapstructure:"config_file"`
	// JobDir is where training processes leave their reports.
	JobDir string `mapstructure:"job_dir"`
	// Procfs and Sysfs are where these file systems are mounted.
	Procfs string `mapstructure:"procfs"`
	Sysfs  string `mapstructure:"sysfs"`
}

// Validate says what is wrong with the configuration.
func (c *Config) Validate() error {
	if c.CollectionInterval < 100*time.Millisecond {
		return errors.New("collection_interval: at least 100ms")
	}
	node, err := c.node()
	if err != nil {
		return fmt.Errorf("config_file: %w", err)
	}
	return node.Validate()
}

// node is the configuration of the exporter's node role that this one means.
func (c *Config) node() (config.Node, error) {
	n, err := config.LoadNode(c.File)
	if err != nil {
		return n, err
	}
	n.Interval, n.JobDir = c.CollectionInterval, c.JobDir
	for _, f := range []struct {
		to   *string
		from string
	}{{&n.Name, c.NodeName}, {&n.Procfs, c.Procfs}, {&n.Sysfs, c.Sysfs}} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	return n, nil
}

// NewFactory makes the receiver.
func NewFactory() otelreceiver.Factory {
	return otelreceiver.NewFactory(Type,
		func() component.Config { return &Config{CollectionInterval: 10 * time.Second} },
		otelreceiver.WithMetrics(create, component.StabilityLevelDevelopment))
}

func create(_ context.Context, settings otelreceiver.Settings, cfg component.Config, next consumer.Metrics) (otelreceiver.Metrics, error) {
	c, ok := cfg.(*Config)
	if !ok {
		return nil, fmt.Errorf("receiver %s: configuration of the type %T", Type, cfg)
	}
	node, err := c.node()
	if err != nil {
		return nil, fmt.Errorf("receiver %s: %w", Type, err)
	}
	set, err := app.NodeSet(node, slog.New(zapslog.NewHandler(settings.Logger.Core())))
	if err != nil {
		return nil, fmt.Errorf("receiver %s: %w", Type, err)
	}
	return &receiver{set: set, node: node.Name, every: c.CollectionInterval, next: next, log: settings.Logger}, nil
}
