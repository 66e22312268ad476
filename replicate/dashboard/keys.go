package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"regedge/replicate/metering/writer"
)

// maxName bounds the name of a key, a token or an account, in characters.
const maxName = 60

// wordsOfName returns why a name is refused, or "": none if it is empty, else that it is too long, since cutting it
// would lose the rest unseen.
func wordsOfName(name, none string) string {
	switch {
	case name == "":
		return none
	case utf8.RuneCountInString(name) > maxName:
		return fmt.Sprintf("A name has at most %d characters.", maxName)
	}
	return ""
}

// maxRevoked bounds how many revoked keys a page lists: the newest.
const maxRevoked = 20

// endsSoon is how long before its end the overview warns of a key.
const endsSoon = 14 * 24 * time.Hour

type overviewData struct {
	accountView
	Active []keyView
	Ending []keyView // those that end soon
}

func (d *Dashboard) overviewPage(v *visit) (answer, error) {
	view, err := d.readCharted(v.r.Context(), v.user.Account)
	if err != nil {
		return answer{}, err
	}
	active, _, err := d.readKeys(v.r.Context(), v.user.Account)
	data := overviewData{accountView: view, Active: active}
	for _, k := range active {
		if k.Expires != nil && k.Expires.Before(d.now().Add(endsSoon)) {
			data.Ending = append(data.Ending, k)
		}
	}
	return answer{page: "overview", title: view.Account.Name, data: data, searches: true}, err
}

type keysData struct {
	Active, Revoked []keyView
	MaxKeys         int
	Form            keyForm
}

func (d *Dashboard) keysPage(v *visit) (answer, error) { return d.keys(v, "", keyForm{}) }

func (d *Dashboard) keys(v *visit, words string, form keyForm) (answer, error) {
	data := keysData{MaxKeys: maxKeys, Form: form}
	var err error
	if data.Active, data.Revoked, err = d.readKeys(v.r.Context(), v.user.Account); err != nil {
		return answer{}, err
	}
	a := answer{page: "keys", title: "API keys", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

// Messages for a key that is not created.
const (
	wordsTooMany = "You have 5 active keys, the most an account can have. Revoke one first."
	wordsADay    = "Your account has made 100 keys within a day, the most it can. Make the next one tomorrow."
	wordsNoName  = "The key needs a name: what it is for, or where it is used."
)

type newKeyData struct{ writer.NewKey }

func (d *Dashboard) makeKey(v *visit) (answer, error) {
	var form keyForm
	form.keep(v)
	settings := writer.KeySettings{Name: form.Name, Allowed: form.networks()}
	if words := wordsOfName(settings.Name, wordsNoName); words != "" {
		return d.keys(v, words, form)
	}
	var err error
	if settings.Expires, err = d.chosenEnd(v); err != nil {
		return answer{}, err
	}
	if settings.PerMinute, settings.MonthlyCredits, err = form.limits(); err != nil {
		return d.keys(v, wordsLimits, form)
	}
	account, err := d.readAccount(v.r.Context(), v.user.Account)
	if err != nil {
		return answer{}, err
	}
	if settings.PerMinute > account.Plan.PerMinute {
		return d.keys(v, wordsLimits, form)
	}
	detail := settings.Name + endWords(settings.Expires) + limitWords(settings)
	made, err := d.client.AddKeyWith(writer.WithAct(v.r.Context(), v.act("create key", v.user.Account, detail)), v.user.Account, settings)
	switch {
	case errors.Is(err, writer.ErrTooManyKeys):
		return d.keys(v, wordsTooMany, form)
	case errors.Is(err, writer.ErrTooMany):
		return d.keys(v, wordsADay, form)
	case errors.Is(err, writer.ErrMalformed): // all but the networks was checked before
		return d.keys(v, wordsNetworks, form)
	}
	return answer{page: "new-key", title: "Your new key", data: newKeyData{made}}, err
}

// ownKey finds a key of the visitor's account by the id in the path, without its usage, and one that has ended too if
// that is wanted. Any other answers 404.
func (d *Dashboard) ownKey(v *visit, endedToo bool) (keyView, error) {
	id, err := v.id()
	if err != nil {
		return keyView{}, err
	}
	k, err := d.client.Key(v.r.Context(), id)
	if err == nil && (k.Account != v.user.Account || !k.Active() && !endedToo) {
		err = errMissing
	}
	return keyView{Key: k}, err
}

// shownKey is ownKey for a page that shows the key's usage.
func (d *Dashboard) shownKey(v *visit) (keyView, error) {
	k, err := d.ownKey(v, false)
	if err != nil {
		return k, err
	}
	views, err := d.viewKeys(v.r.Context(), v.user.Account, k.Key)
	if err != nil {
		return k, err
	}
	return views[0], nil
}

func (d *Dashboard) revokePage(v *visit) (answer, error) {
	k, err := d.shownKey(v)
	return answer{page: "revoke", title: "Revoke a key", data: k}, err
}

func (d *Dashboard) revokeKey(v *visit) (answer, error) {
	k, err := d.ownKey(v, true) // the form may come a second time
	if err != nil {
		return answer{}, err
	}
	ctx := writer.WithAct(v.r.Context(), v.act("revoke key", v.user.Account, fmt.Sprintf("%s (%s)", k.Name, k.Begins())))
	revoked, err := d.client.RevokeKey(ctx, k.ID)
	return see("/keys", orPending(revoked, "revoked")), err
}
