package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit/browser"
	"regedge/internal/testkit/mailtest"
	"regedge/replicate/metering/writer"
)

// TestAnOwnerSwitchesMailOnInABrowser, sends a test and sees that it was sent. The page is accessible and
// fits a small phone.
func TestAnOwnerSwitchesMailOnInABrowser(t *testing.T) {
	axe := browser.Axe(t)
	server := mailtest.New(t, mailtest.Options{NoTLS: true})
	c := startCentre(t, "--smtp-host", server.Addr(), "--smtp-tls", "none", "--smtp-from", "notices@regedge.example",
		"--dashboard-url", "https://dashboard.example")
	account, _ := c.account(t, 10)
	invitation, err := c.client.Invite(t.Context(), "ada@example.com", account)
	require.NoError(t, err)
	p := browser.New(t)
	p.Open(c.url() + writer.InvitationPath + invitation.Token)
	p.Type("#password", "four plain words here")
	submit(p, "form.stack button", `document.querySelector(".who button")`)
	p.Open(c.url() + "/settings")
	submit(p, `a[href="/settings/mail"]`, heading("E-mail notices"))
	submit(p, "form.stack button", `document.querySelector(".badge.good")`)
	submit(p, `form[action="/settings/mail/test"] button`, `document.querySelector("tbody tr")`)
	require.True(t, c.await(func() bool { return len(server.Messages()) == 1 }), c.stderr.String())
	require.Equal(t, "ada@example.com", server.Messages()[0].To)
	require.True(t, c.await(func() bool {
		p.Open(c.url() + "/settings/mail")
		return p.Eval(`document.querySelector("tbody td .badge").textContent`) == "delivered"
	}))
	for _, v := range append(browser.Views, browser.View{Name: "small phone", Width: 320, Height: 640}) {
		p.As(v)
		p.Open(c.url() + "/settings/mail")
		p.RequireAccessible(axe, v.Name)
		require.Equal(t, "fits", p.Eval(`document.documentElement.scrollWidth <= innerWidth ? "fits" : "too wide"`), v.Name)
		if browser.WantScreens() {
			p.Picture("mail", v)
		}
	}
	p.RequireClean(c.url())
}
