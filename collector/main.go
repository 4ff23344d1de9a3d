// SPDX-License-Identifier: Apache-2.0

// Command trainyard-collector is an OpenTelemetry Collector with trainyard's receiver: what the node role of the
// exporter measures goes out by OTLP and as a Prometheus endpoint, from the same readings.
package main

import (
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/otelcol"
)

func main() {
	if err := otelcol.NewCommand(settings()).Execute(); err != nil {
		os.Exit(1) // the command has said why
	}
}

// version is that of the distribution; a build overrides it with -ldflags.
var version = "0.1.0-dev"

func settings(uris ...string) otelcol.CollectorSettings {
	return otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "trainyard-collector", Description: "OpenTelemetry Collector with trainyard's receiver", Version: version},
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              uris,
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory()},
			DefaultScheme:     "env",
		}},
	}
}
