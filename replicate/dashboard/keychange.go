package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
)

// maxDays is the latest end that a form gives a key, and maxHours the longest overlap of a rotation.
const (
	maxDays  = 3650
	maxHours = int64(writer.MaxOverlap / time.Hour)
)

// chosenEnd reads the field days: when a key shall end, nil for never. A form that is sent again gives the
// same end only within the same minute; after that it counts as another change.
func (d *Dashboard) chosenEnd(v *visit) (*time.Time, error) {
	chosen := v.line("days")
	if chosen == "" {
		return nil, nil
	}
	days, err := strconv.Atoi(chosen)
	if err != nil || days < 1 || days > maxDays {
		return nil, errFormBroken
	}
	end := d.now().Truncate(time.Minute).AddDate(0, 0, days)
	return &end, nil
}

// endWords formats an end for the audit log.
func endWords(end *time.Time) string {
	if end == nil {
		return ""
	}
	return ", ends " + end.Format(time.RFC3339)
}

type keyData struct {
	keyView
	Form keyForm
}

func (d *Dashboard) keyPage(v *visit) (answer, error) { return d.keyWith(v, "") }

func (d *Dashboard) keyWith(v *visit, words string) (answer, error) {
	k, err := d.shownKey(v)
	data := keyData{k, formOf(k.Key)}
	a := answer{page: "key", title: k.Name, error: words}
	if words != "" {
		data.Form.keep(v)
		a.status = http.StatusUnprocessableEntity
	}
	a.data = data
	return a, err
}

// changeOwnKey makes one change of a key and shows it again.
func (d *Dashboard) changeOwnKey(v *visit, act, detail, done string, change writer.KeyChange) (answer, error) {
	k, err := d.ownKey(v, false)
	if err != nil {
		return answer{}, err
	}
	ctx := writer.WithAct(v.r.Context(), v.act(act, v.user.Account, fmt.Sprintf("%s (%s)%s", k.Name, k.Begins(), detail)))
	changed, err := d.client.ChangeKey(ctx, k.ID, change)
	return see(fmt.Sprint("/keys/", k.ID), orPending(changed, done)), endedRefusal(err)
}

// endedRefusal answers that a key has ended since the page was shown.
func endedRefusal(err error) error {
	if errors.Is(err, writer.ErrKeyEnded) {
		return errMissing
	}
	return err
}

func (d *Dashboard) renameKey(v *visit) (answer, error) {
	name := v.line("name")
	if words := wordsOfName(name, wordsNoName); words != "" {
		return d.keyWith(v, words)
	}
	return d.changeOwnKey(v, "rename key", " to "+name, "renamed", writer.KeyChange{Name: &name})
}

func (d *Dashboard) changeKeyEnd(v *visit) (answer, error) {
	end, err := d.chosenEnd(v)
	if err != nil {
		return answer{}, err
	}
	detail := endWords(end)
	if end == nil {
		detail = ", never ends"
	}
	return d.changeOwnKey(v, "change end of key", detail, "end", writer.KeyChange{Expires: end, NeverExpires: end == nil})
}

// changeKeyAddresses sets from where a key may be used.
func (d *Dashboard) changeKeyAddresses(v *visit) (answer, error) {
	var form keyForm
	form.keep(v)
	allowed := form.networks()
	detail := " to " + strings.Join(allowed, ", ")
	if len(allowed) == 0 {
		detail = ", everywhere"
	}
	a, err := d.changeOwnKey(v, "change addresses of key", detail, "addresses", writer.KeyChange{Allowed: &allowed})
	if errors.Is(err, writer.ErrMalformed) {
		return d.keyWith(v, wordsNetworks)
	}
	return a, err
}

// changeKeyLimits sets a key's rate and credit limits.
func (d *Dashboard) changeKeyLimits(v *visit) (answer, error) {
	var form keyForm
	form.keep(v)
	perMinute, monthly, err := form.limits()
	if err != nil {
		return d.keyWith(v, wordsLimits)
	}
	detail := fmt.Sprintf(" to %d a minute and %d credits a month", perMinute, monthly)
	change := writer.KeyChange{PerMinute: &perMinute, MonthlyCredits: &monthly}
	a, err := d.changeOwnKey(v, "change limits of key", detail, "limits", change)
	if errors.Is(err, writer.ErrMalformed) {
		return d.keyWith(v, wordsLimits)
	}
	return a, err
}

// rotateKey gives a key a new secret and shows it, once.
func (d *Dashboard) rotateKey(v *visit) (answer, error) {
	k, err := d.ownKey(v, false)
	if err != nil {
		return answer{}, err
	}
	hours, err := strconv.ParseInt(v.line("hours"), 10, 64)
	if err != nil || hours < 1 || hours > maxHours {
		return answer{}, errFormBroken
	}
	ctx := writer.WithAct(v.r.Context(), v.act("rotate key", v.user.Account, fmt.Sprintf("%s (%s)", k.Name, k.Begins())))
	made, err := d.client.RotateKey(ctx, k.ID, time.Duration(hours)*time.Hour)
	return answer{page: "new-key", title: "Your new secret", data: newKeyData{made}}, endedRefusal(err)
}
