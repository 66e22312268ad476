package dashboard

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"regedge/replicate/metering/writer"
	"regedge/replicate/notice"
	"regedge/replicate/webhook"
)

// webhookPath is the page of an owner's webhook.
const webhookPath = "/settings/webhook"

// deliveriesShown is how many events the page lists: the newest.
const deliveriesShown = 20

// maxLow bounds the balance below which an owner is notified.
const maxLow = 1_000_000_000_000

type webhookData struct {
	Hook       *notice.Target // nil for none
	Typed      string         // the address in the form
	Low        string         // the balance in the form
	Secret     string         // a new one, shown once
	Deliveries []deliveryView
	MaxURL     int
	Attempts   int // of each event
}

// deliveryView is an event with its state in words.
type deliveryView struct{ notice.Delivery }

// State is the class of a badge, and its words.
func (d deliveryView) State() [2]string {
	switch {
	case d.Delivered != nil:
		return [2]string{"good", "delivered"}
	case d.Next == nil:
		return [2]string{"bad", "given up"}
	case d.Attempts == 0:
		return [2]string{"", "waits"}
	}
	return [2]string{"warn", "retrying"}
}

func (d *Dashboard) webhookPage(v *visit) (answer, error) { return d.webhookWith(v, "", webhookData{}) }

func (d *Dashboard) webhookWith(v *visit, words string, data webhookData) (answer, error) {
	ctx := v.r.Context()
	hook, err := notice.ReadWebhook(ctx, d.config.Ledger, v.user.Account)
	if err != nil {
		return answer{}, err
	}
	if data.Deliveries, err = d.deliveries(ctx, hook); err != nil {
		return answer{}, err
	}
	data.Hook, data.MaxURL, data.Attempts = hook, webhook.MaxURL, notice.MaxAttempts
	if hook != nil && data.Typed == "" && data.Low == "" {
		data.Typed, data.Low = hook.URL, strconv.FormatInt(hook.Low, 10)
	} else if hook == nil && words == "" {
		if data.Low, err = d.proposedLow(v); err != nil {
			return answer{}, err
		}
	}
	a := answer{page: "webhook", title: "Webhook", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

// deliveries lists the newest notices of a target, which may be nil.
func (d *Dashboard) deliveries(ctx context.Context, target *notice.Target) (shown []deliveryView, err error) {
	if target == nil {
		return nil, nil
	}
	list, err := notice.Deliveries(ctx, d.config.Ledger, target.ID, deliveriesShown)
	for _, delivery := range list {
		shown = append(shown, deliveryView{delivery})
	}
	return shown, err
}

// setWebhook sets address and threshold, and shows the secret when it is new.
func (d *Dashboard) setWebhook(v *visit) (answer, error) {
	typed := webhookData{Typed: v.line("url"), Low: v.line("low")}
	if err := webhook.CheckURL(typed.Typed, d.config.PrivateWebhooks); err != nil {
		_, why, _ := strings.Cut(err.Error(), ": ")
		return d.webhookWith(v, "That address can't be used: "+why+".", typed)
	}
	low, err := lowOf(typed.Low)
	if err != nil {
		return d.webhookWith(v, badLow, typed)
	}
	hook := notice.Target{Account: v.user.Account, URL: typed.Typed, Low: low}
	act := v.act("set webhook", v.user.Account, fmt.Sprintf("at %s, below %d credits", hostOf(hook.URL), low))
	return d.changeWebhook(v, act, func(ctx context.Context, tx *sql.Tx, now int64, secret string) (taken bool, err error) {
		before, err := notice.ReadWebhook(ctx, tx, hook.Account)
		if err != nil {
			return false, err
		}
		taken, err = notice.SetWebhook(ctx, tx, now, hook, secret, false)
		if err == nil && before != nil && before.URL == hook.URL && before.Low == hook.Low {
			err = notice.ErrRepeated
		}
		return taken, err
	})
}

// badLow is the error for an invalid balance.
const badLow = "The balance is a whole number of credits, 0 for never."

// proposedLow is a tenth of the credits left, for the form of an owner without a chosen balance.
func (d *Dashboard) proposedLow(v *visit) (string, error) {
	a, err := d.client.Account(v.r.Context(), v.user.Account)
	return strconv.FormatInt(max(a.Balance, 0)/10, 10), err
}

// lowOf parses the balance below which an owner is notified.
func lowOf(typed string) (int64, error) {
	low, err := strconv.ParseInt(typed, 10, 64)
	if err == nil && (low < 0 || low > maxLow) {
		err = strconv.ErrRange
	}
	return low, err
}

// hostOf returns the part of an address that the audit log keeps; the path may be a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// renewWebhook gives the webhook a new secret and shows it.
func (d *Dashboard) renewWebhook(v *visit) (answer, error) {
	act := v.act("renew secret of webhook", v.user.Account, "")
	return d.changeWebhook(v, act, func(ctx context.Context, tx *sql.Tx, now int64, secret string) (taken bool, err error) {
		hook, err := notice.ReadWebhook(ctx, tx, v.user.Account)
		if err == nil && hook == nil {
			err = errMissing
		}
		if err != nil {
			return false, err
		}
		// The hook as it is, to see whether it has this form's secret already.
		if taken, err = notice.SetWebhook(ctx, tx, now, *hook, secret, false); err != nil {
			return false, err
		}
		if taken {
			return true, notice.ErrRepeated
		}
		return notice.SetWebhook(ctx, tx, now, *hook, secret, true)
	})
}

// changeWebhook changes the webhook, and shows the new secret if change reports that it was stored. After
// notice.ErrRepeated nothing is changed.
func (d *Dashboard) changeWebhook(v *visit, act writer.Act, change func(ctx context.Context, tx *sql.Tx, now int64, secret string) (taken bool, err error)) (answer, error) {
	// The secret derives from the form: sent twice, the form sets it once and shows it both times.
	secret, taken := webhook.Secret([24]byte(macOf(v.secret, "webhook "+v.field("token")))), false
	err := d.config.Writer.Commit(v.r.Context(), act, func(ctx context.Context, tx *sql.Tx, now int64) (err error) {
		taken, err = change(ctx, tx, now, secret)
		return err
	})
	if errors.Is(err, notice.ErrRepeated) {
		err = nil // the form was sent twice
	}
	switch {
	case err != nil:
		return answer{}, err
	case taken:
		return d.webhookWith(v, "", webhookData{Secret: secret})
	}
	return see(webhookPath, "webhook"), nil
}

// testRequest identifies the form that asks for a test.
func testRequest(v *visit) string {
	return hex.EncodeToString(macOf(v.secret, "test "+v.field("token")))
}

func (d *Dashboard) testWebhook(v *visit) (answer, error) {
	err := d.config.Writer.Commit(v.r.Context(), v.act("test webhook", v.user.Account, ""), func(ctx context.Context, tx *sql.Tx, now int64) error {
		hook, err := notice.ReadWebhook(ctx, tx, v.user.Account)
		if err == nil && hook == nil {
			err = errMissing
		}
		if err != nil {
			return err
		}
		return notice.PutTest(ctx, tx, now, *hook, testRequest(v))
	})
	if errors.Is(err, notice.ErrRepeated) {
		err = nil // the form was sent twice
	}
	if errors.Is(err, notice.ErrFull) {
		return d.webhookWith(v, "Too many events wait to be delivered: correct the address first.", webhookData{})
	}
	return see(webhookPath, "tested"), err
}

func (d *Dashboard) removeWebhook(v *visit) (answer, error) {
	err := d.config.Writer.Commit(v.r.Context(), v.act("remove webhook", v.user.Account, ""), func(ctx context.Context, tx *sql.Tx, _ int64) error {
		return notice.RemoveWebhook(ctx, tx, v.user.Account)
	})
	return see(webhookPath, "unhooked"), err
}
