package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"regedge/replicate/metering/writer"
)

// maxName bounds the name of a key or an account, in characters.
const maxName = 60

// maxRevoked bounds how many revoked keys a page lists: the newest.
const maxRevoked = 20

type overviewData struct {
	accountView
	Active []keyView
}

func (d *Dashboard) overviewPage(v *visit) (answer, error) {
	view, err := d.readAccount(v.r.Context(), v.user.Account)
	if err != nil {
		return answer{}, err
	}
	active, _, err := d.readKeys(v.r.Context(), v.user.Account)
	return answer{page: "overview", title: view.Account.Name, data: overviewData{view, active}}, err
}

type keysData struct {
	Active, Revoked []keyView
	MaxKeys         int
	// After is the newest key's id when the form was rendered, so that sending the form a
	// second time creates no second key.
	After int64
	Name  string
}

func (d *Dashboard) keysPage(v *visit) (answer, error) { return d.keys(v, "") }

func (d *Dashboard) keys(v *visit, words string) (answer, error) {
	data := keysData{MaxKeys: maxKeys}
	var err error
	if data.Active, data.Revoked, err = d.readKeys(v.r.Context(), v.user.Account); err != nil {
		return answer{}, err
	}
	data.Revoked = data.Revoked[:min(len(data.Revoked), maxRevoked)]
	data.After = newest(data.Active, data.Revoked)
	a := answer{page: "keys", title: "API keys", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

func newest(lists ...[]keyView) (id int64) {
	for _, list := range lists {
		for _, k := range list {
			id = max(id, k.ID)
		}
	}
	return id
}

// Messages for a key that is not created.
const (
	wordsTooMany = "You have 5 active keys, the most an account can have. Revoke one first."
	wordsNoName  = "The key needs a name: what it is for, or where it is used."
	wordsRepeat  = "Your keys have changed since this form was shown, so no key was created. If you have just created one and did not save it, revoke it and create another: it is shown once."
)

type newKeyData struct{ writer.NewKey }

func (d *Dashboard) makeKey(v *visit) (answer, error) {
	name := printable(v.line("name"), maxName)
	active, revoked, err := d.readKeys(v.r.Context(), v.user.Account)
	if err != nil {
		return answer{}, err
	}
	switch {
	case len(active) >= maxKeys:
		return d.keys(v, wordsTooMany)
	case v.field("after") != strconv.FormatInt(newest(active, revoked), 10):
		return d.keys(v, wordsRepeat)
	case name == "":
		return d.keys(v, wordsNoName)
	}
	ctx := writer.WithAct(v.r.Context(), v.act("make key", v.user.Account, name))
	made, err := d.client.AddKey(ctx, v.user.Account, name)
	if errors.Is(err, writer.ErrTooManyKeys) { // another browser was faster
		return d.keys(v, wordsTooMany)
	}
	return answer{page: "new-key", title: "Your new key", data: newKeyData{made}}, err
}

// ownKey finds an active key of the visitor's account by the id in the path. Any other
// answers 404.
func (d *Dashboard) ownKey(v *visit) (keyView, error) {
	id, err := v.id()
	if err != nil {
		return keyView{}, err
	}
	active, _, err := d.readKeys(v.r.Context(), v.user.Account)
	if err != nil {
		return keyView{}, err
	}
	for _, k := range active {
		if k.ID == id {
			return k, nil
		}
	}
	return keyView{}, errMissing
}

func (d *Dashboard) revokePage(v *visit) (answer, error) {
	k, err := d.ownKey(v)
	return answer{page: "revoke", title: "Revoke a key", data: k}, err
}

func (d *Dashboard) revokeKey(v *visit) (answer, error) {
	k, err := d.ownKey(v)
	if err != nil {
		return answer{}, err
	}
	ctx := writer.WithAct(v.r.Context(), v.act("revoke key", v.user.Account, fmt.Sprintf("%s (%s)", k.Name, k.Begins())))
	revoked, err := d.client.RevokeKey(ctx, k.ID)
	return see("/keys", orPending(revoked, "revoked")), err
}
