// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/goccy/go-yaml"
)

// CheckListen refuses an address that others can reach unless the web configuration asks them who they are: by
// password or by client certificate. An empty file name means no web configuration. The file itself is checked by the
// toolkit that reads it.
func CheckListen(address, webConfigFile string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %q: %w", address, err)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	if webConfigFile == "" {
		return fmt.Errorf("--listen %s: reachable from other machines, which needs credentials in --web.config.file; without them use 127.0.0.1", address)
	}
	data, err := os.ReadFile(webConfigFile)
	if err != nil {
		return fmt.Errorf("read web configuration: %w", err)
	}
	var web struct {
		Users map[string]string `yaml:"basic_auth_users"`
		TLS   struct {
			ClientAuth string `yaml:"client_auth_type"`
		} `yaml:"tls_server_config"`
	}
	if err := yaml.Unmarshal(data, &web); err != nil {
		return fmt.Errorf("read web configuration %s: %w", webConfigFile, err)
	}
	if len(web.Users) == 0 && web.TLS.ClientAuth != "RequireAndVerifyClientCert" {
		return fmt.Errorf("--listen %s: reachable from other machines, and %s has neither basic_auth_users nor client_auth_type: RequireAndVerifyClientCert", address, webConfigFile)
	}
	return nil
}
