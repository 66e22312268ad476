package writer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

func TestTextThatIsNoneIsNotPrintable(t *testing.T) {
	require.True(t, writer.Printable("क\u200dष"))
	require.False(t, writer.Printable("a\xffb"))
}

func TestTextsAreOnePrintableLine(t *testing.T) {
	client, _, _ := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "മലയാളം ന്\u200d & Söhne", "owner@example.com", "starter")
	require.NoError(t, err)
	require.Equal(t, "മലയാളം ന്\u200d & Söhne", a.Name)
	long := strings.Repeat("ക", 201)
	for _, name := range []string{"", " ", "a\nb", "a\tb", "\x1b[2J", "a\u202eb", "a\x00", long} {
		_, err := client.AddAccount(t.Context(), name, "", "starter")
		require.ErrorIs(t, err, writer.ErrMalformed, "account %q", name)
		_, err = client.ChangeAccount(t.Context(), a.ID, writer.AccountChange{Name: &name})
		require.ErrorIs(t, err, writer.ErrMalformed, "account %q", name)
		if strings.TrimSpace(name) != "" {
			_, err = client.AddKey(t.Context(), a.ID, name)
			require.ErrorIs(t, err, writer.ErrMalformed, "key %q", name)
		}
	}
	_, err = client.AddKey(t.Context(), a.ID, long[:len("ക")*200])
	require.NoError(t, err)
	for _, email := range []string{"owner", "owner@", "a b@example.com", "Owner <owner@example.com>", "o@example.com\r\nBcc: x@example.com"} {
		_, err := client.AddAccount(t.Context(), "made-up", email, "starter")
		require.ErrorIs(t, err, writer.ErrMalformed, "%q", email)
		_, err = client.ChangeAccount(t.Context(), a.ID, writer.AccountChange{Email: &email})
		require.ErrorIs(t, err, writer.ErrMalformed, "%q", email)
	}
	for _, email := range []string{"owner@example.com\r\n", "\towner@example.com "} {
		a, err = client.ChangeAccount(t.Context(), a.ID, writer.AccountChange{Email: &email})
		require.NoError(t, err)
		require.Equal(t, "owner@example.com", a.Email)
	}
	none := ""
	_, err = client.ChangeAccount(t.Context(), a.ID, writer.AccountChange{Email: &none})
	require.NoError(t, err, "an address can be removed")
	_, err = client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{Amount: 1, Note: "a\nb"})
	require.ErrorIs(t, err, writer.ErrMalformed)
	for _, id := range []string{"Free", "a b", "a\n", ".."} {
		_, err = client.SetPlan(t.Context(), writer.Plan{ID: id})
		require.Error(t, err, "plan %q", id)
	}
}

func TestErrorsNameWhatIsMissingOnce(t *testing.T) {
	client, _, _ := start(t, t.TempDir())
	a, err := client.AddAccount(t.Context(), "made-up", "", "starter")
	require.NoError(t, err)
	_, err = client.AddNode(t.Context(), "one")
	require.NoError(t, err)
	plan := "nil"
	for want, call := range map[string]func() error{
		"read account: there is no account 99": func() error { _, err := client.Account(t.Context(), 99); return err },
		"add key: there is no account 99":      func() error { _, err := client.AddKey(t.Context(), 99, ""); return err },
		"list keys: there is no account 99":    func() error { _, err := client.Keys(t.Context(), 99); return err },
		"revoke key: there is no key 99":       func() error { _, err := client.RevokeKey(t.Context(), 99); return err },
		"list credits: there is no account 99": func() error { _, err := client.Credits(t.Context(), 99); return err },
		"change credits: there is no account 99": func() error {
			_, err := client.ChangeCredits(t.Context(), 99, writer.CreditChange{Amount: 1})
			return err
		},
		"change credits: the amount is out of range: it is 1 to 70368744177664, or -1 to -70368744177664 to take bought credits": func() error {
			_, err := client.ChangeCredits(t.Context(), a.ID, writer.CreditChange{})
			return err
		},
		`change account: there is no plan "nil"`: func() error {
			_, err := client.ChangeAccount(t.Context(), a.ID, writer.AccountChange{Plan: &plan})
			return err
		},
		"retire node: there is no node two":     func() error { _, err := client.RetireNode(t.Context(), "two", false); return err },
		"add node: there is a node one already": func() error { _, err := client.AddNode(t.Context(), "one"); return err },
	} {
		require.EqualError(t, call(), want)
	}
}
