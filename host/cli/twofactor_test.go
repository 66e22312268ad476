package cli

import (
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"regedge/host/devdata"
	"regedge/internal/testkit/browser"
)

// TestTwoFactorInABrowser switches two-factor authentication on in a browser without scripts, and signs in
// with a code.
func TestTwoFactorInABrowser(t *testing.T) {
	t.Parallel()
	axe := browser.Axe(t)
	h := newHousehold(t)
	code := func(secret string, ahead time.Duration) string {
		code, err := totp.GenerateCode(secret, time.Now().Add(ahead))
		require.NoError(t, err)
		return code
	}
	h.signIn(h.Tab, devdata.Operator, h.operatorPassword)
	h.Open(h.dashboard + "/settings/two-factor")
	require.Equal(t, "232", h.Eval(`String(document.querySelector("svg.qr").getBoundingClientRect().width)`))
	h.look(axe, "two-factor")
	secret := h.Eval(`document.querySelector("[name=secret]").value`)
	h.Type("#current", h.operatorPassword)
	h.Type("#code", code(secret, 0)+"\r")
	h.WaitFor(heading("Recovery codes"))
	h.look(axe, "two-factor-recovery-codes")
	h.Open(h.dashboard + "/settings")
	h.look(axe, "two-factor-settings")

	password := func() {
		h.Type("#email", devdata.Operator)
		h.Type("#password", h.operatorPassword+"\r")
		h.WaitFor(heading("Enter the code"))
	}
	submit(h.Tab, ".who button", heading("Sign in"))
	password()
	h.look(axe, "two-factor-code")

	h.WithoutScripts()
	h.Open(h.dashboard + "/sign-in")
	password()
	h.Type("#code", code(secret, 30*time.Second)+"\r")
	h.WaitFor(`document.querySelector(".who button")`)
	submit(h.Tab, ".who button", heading("Sign in"))
	password()
	h.RequireClean(h.dashboard)
}

// look checks that the open page is accessible, and takes pictures of it when they were asked for.
func (h *household) look(axe, name string) {
	h.T.Helper()
	for _, v := range browser.Views {
		h.As(v)
		h.RequireAccessible(axe, v.Name+" "+name)
		if browser.WantScreens() {
			h.Picture("dashboard-"+name, v)
		}
	}
}
