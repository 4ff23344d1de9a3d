// SPDX-License-Identifier: Apache-2.0

package trainyardreceiver

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	otelreceiver "go.opentelemetry.io/collector/receiver"
)

// Type is the receiver's name in the configuration.
var Type = component.MustNewType("trainyard")

// Config is the receiver's part of the configuration.
type Config struct {
	// CollectionInterval is how often the newest snapshot goes into the pipeline.
	CollectionInterval time.Duration `mapstructure:"collection_interval"`
}

// Validate says what is wrong with the configuration.
func (c *Config) Validate() error {
	if c.CollectionInterval < 100*time.Millisecond {
		return errors.New("collection_interval: less than 100ms")
	}
	return nil
}

// NewFactory makes the receiver.
func NewFactory() otelreceiver.Factory {
	return otelreceiver.NewFactory(Type,
		func() component.Config { return &Config{CollectionInterval: 10 * time.Second} },
		otelreceiver.WithMetrics(create, component.StabilityLevelDevelopment))
}

func create(_ context.Context, set otelreceiver.Settings, cfg component.Config, next consumer.Metrics) (otelreceiver.Metrics, error) {
	return nil, errors.New("not wired yet")
}
