package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"regedge/host/server"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/push"
)

// dashboardFlags are the flags of the pages that the writer serves to people.
type dashboardFlags struct {
	DashboardURL string   `name:"dashboard-url" placeholder:"URL" help:"Where people reach the dashboard; begins the links of invitations. By default the host that a page was asked from."`
	ReferenceURL string   `name:"reference-url" placeholder:"URL" help:"Where the API's reference is served; linked from the dashboard."`
	TrustedProxy []string `placeholder:"CIDR" help:"Networks whose hosts are believed about the client's address."`
}

func (f *dashboardFlags) check() error {
	_, err := server.ParseProxies(f.TrustedProxy)
	return errors.Join(err, checkPageURL("--dashboard-url", &f.DashboardURL), checkPageURL("--reference-url", &f.ReferenceURL))
}

// checkPageURL refuses what links can't begin with, and takes slashes off its end, since
// the links add their own. Empty is no address and fine.
func checkPageURL(flag string, address *string) error {
	if *address == "" {
		return nil
	}
	u, err := url.Parse(*address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%s %q is not an address of pages, such as https://registry.example", flag, *address)
	}
	*address = strings.TrimRight(*address, "/")
	return nil
}

// dashboard makes the pages on a writer whose configuration is at; secure says that
// people reach them over TLS, releases may be nil.
func (f *dashboardFlags) dashboard(central *writer.Writer, at writer.Config, secure bool, releases releases) (*dashboard.Dashboard, error) {
	proxies, err := server.ParseProxies(f.TrustedProxy)
	if err != nil {
		return nil, err
	}
	config := dashboard.Config{
		Writer: central, API: central.WithReports(), Ledger: at.Ledger, OperatorToken: at.OperatorToken,
		Releases: releases, URL: f.DashboardURL, ReferenceURL: f.ReferenceURL, Secure: secure,
		Client: proxies.Client, Now: at.Now, Logger: at.Logger,
	}
	pages, err := dashboard.New(config)
	if err != nil {
		return nil, fmt.Errorf("make dashboard: %w", err)
	}
	return pages, nil
}

// releases lists the releases of a registry, the current one first.
type releases func(context.Context) ([]push.Release, error)

// releases lists those of the registry's primary, nil without one.
func (f *beating) releases(closers *closing) (releases, error) {
	if f.Registry == "" {
		return nil, nil
	}
	token, err := fileToken(f.RegistryToken, f.RegistryTokenFile)
	if err != nil {
		return nil, err
	}
	registry := libsql.New(f.Registry, token)
	closers.add(registry.Close)
	return func(ctx context.Context) ([]push.Release, error) { return push.Releases(ctx, registry) }, nil
}
