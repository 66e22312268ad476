package cli

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"regexp"
	"strconv"

	"regedge/host/service"
	"regedge/replicate/mail"
	"regedge/replicate/metering/writer"
	"regedge/replicate/notice"
	"regedge/replicate/webhook"
)

// smtpFlags name the mail server of notices to owners.
type smtpFlags struct {
	Host         string `name:"smtp-host" placeholder:"HOST[:PORT]" help:"Mail server, for owners who want notices by e-mail; none by default. The port is 587, and 465 with --smtp-tls implicit."`
	From         string `name:"smtp-from" placeholder:"ADDRESS" help:"Sender of these messages, such as 'Registry <notices@example.org>'."`
	TLS          string `name:"smtp-tls" enum:"starttls,implicit,none" default:"starttls" help:"How the connection is encrypted: starttls, implicit, or none for a server on this machine (${default})."`
	User         string `name:"smtp-user" placeholder:"NAME" help:"Name to sign in with at the mail server; without it nobody signs in."`
	Password     string `name:"smtp-password" placeholder:"PASSWORD" help:"Password of that name. Better in a file or the environment, where other users can't see it."`
	PasswordFile string `name:"smtp-password-file" type:"path" placeholder:"FILE" help:"File that holds the password; it wins over the password itself."`
}

// The ports of message submission (RFC 8314), and of a relay.
var smtpPorts = map[string]int{"starttls": 587, "implicit": 465, "none": 25}

// hostName matches a valid DNS name.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

// check refuses flags that could send no mail, or would send secrets unencrypted.
func (f *smtpFlags) check(dashboardURL string) error {
	if f.Host == "" {
		if f.From+f.User+f.Password+f.PasswordFile != "" {
			return errors.New("--smtp-from, --smtp-user and its password need --smtp-host")
		}
		return nil
	}
	host, _, err := f.server()
	if err != nil {
		return err
	}
	if _, err := netmail.ParseAddress(f.From); err != nil {
		return fmt.Errorf("--smtp-from %q is no e-mail address", f.From)
	}
	switch {
	case (f.User == "") != (f.Password+f.PasswordFile == ""):
		return errors.New("--smtp-user goes with --smtp-password-file or REGEDGE_SMTP_PASSWORD")
	case f.TLS == "none" && !isLoopback(net.JoinHostPort(host, "0")):
		return errors.New("--smtp-tls none is for a mail server on this machine")
	case f.TLS == "none" && f.User != "":
		return errors.New("--smtp-tls none sends no password: leave out --smtp-user")
	case dashboardURL == "":
		return errors.New("--smtp-host needs --dashboard-url, with which the links in messages begin")
	}
	return nil
}

// server is the mail server's host and port.
func (f *smtpFlags) server() (host string, port int, err error) {
	host, port = f.Host, smtpPorts[f.TLS]
	if h, p, err := net.SplitHostPort(f.Host); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, fmt.Errorf("--smtp-host %q has no port number behind its colon", f.Host)
		}
		host, port = h, int(n)
	}
	if net.ParseIP(host) == nil && !hostName.MatchString(host) {
		return "", 0, fmt.Errorf("--smtp-host %q is no host", f.Host)
	}
	return host, port, nil
}

// carrier returns the carrier of e-mail, nil without a mail server. The flags were checked.
func (f *smtpFlags) carrier(dashboardURL string, config writer.Config) (*mail.Carrier, error) {
	if f == nil || f.Host == "" {
		return nil, nil
	}
	of, err := f.config(dashboardURL, config)
	if err != nil {
		return nil, err
	}
	return mail.New(of), nil
}

func (f *smtpFlags) config(dashboardURL string, config writer.Config) (of mail.Config, err error) {
	host, port, err := f.server()
	if err != nil {
		return of, err
	}
	from, err := netmail.ParseAddress(f.From)
	if err != nil {
		return of, err
	}
	password, err := readToken(f.Password, f.PasswordFile)
	if err != nil {
		return of, fmt.Errorf("--smtp-password-file: %w", err)
	}
	return mail.Config{
		Host: host, Port: port, Security: mail.Security(f.TLS), User: f.User, Password: password, From: *from,
		Dashboard: dashboardURL, Logger: config.Logger,
	}, nil
}

// notices is the service that notifies owners: by webhook and, when smtp names a mail server, by e-mail.
func (f *dashboardFlags) notices(centre *writer.Writer, config writer.Config, smtp *smtpFlags) (service.Service, error) {
	hooks := webhook.New(webhook.Config{Private: f.PrivateWebhooks, Now: config.Now, Logger: config.Logger})
	ways := []notice.Way{{Channel: notice.Webhook, Carrier: hooks}}
	carrier, err := smtp.carrier(f.DashboardURL, config)
	if err != nil {
		return service.Service{}, err
	}
	if carrier != nil {
		ways = append(ways, notice.Way{Channel: notice.Mail, Carrier: carrier, PerDay: mail.PerDay})
	}
	commit := func(ctx context.Context, change func(context.Context, *sql.Tx, int64) error) error {
		return centre.Commit(ctx, writer.Act{}, change)
	}
	sender := notice.New(notice.Config{Ledger: config.Ledger, Commit: commit, Ways: ways, Now: config.Now, Logger: config.Logger, Metrics: config.Metrics})
	return service.Service{Name: "notices", Run: sender.Run}, nil
}
