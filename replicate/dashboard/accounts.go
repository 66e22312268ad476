package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"regedge/replicate/metering/writer"
)

// accountRows is how many accounts a page lists.
const accountRows = 50

type accountsData struct {
	Accounts []writer.Account
	Query    string
	After    string // the cursor of the next page, empty on the last one
	Plans    []writer.Plan
	Plan     string // the plan that a new account gets unless another one is chosen
}

func (d *Dashboard) accountsPage(v *visit) (answer, error) { return d.accounts(v, "") }

func (d *Dashboard) accounts(v *visit, words string) (answer, error) {
	query := v.r.URL.Query()
	data := accountsData{Query: strings.TrimSpace(printable(query.Get("q"), maxName))}
	page, err := d.client.AccountPage(v.r.Context(), writer.ListQuery{Search: data.Query, Limit: accountRows, Cursor: query.Get("after")})
	if err != nil {
		return answer{}, listRefusal(err)
	}
	data.Accounts, data.After = page.Data, page.Next
	if data.Plans, err = d.client.Plans(v.r.Context()); err != nil {
		return answer{}, err
	}
	data.Plan = writer.PlanByDefault(data.Plans)
	a := answer{page: "accounts", title: "Accounts", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

// listRefusal answers 404 to a cursor that leads nowhere.
func listRefusal(err error) error {
	if errors.Is(err, writer.ErrMalformed) {
		return errMissing
	}
	return err
}

func (d *Dashboard) addAccount(v *visit) (answer, error) {
	name, plan := v.line("name"), v.line("plan")
	if words := wordsOfName(name, "The account needs a name."); words != "" {
		return d.accounts(v, words)
	}
	ctx := writer.WithAct(v.r.Context(), v.act("create account", 0, name+", plan "+plan))
	a, err := d.client.AddAccount(ctx, name, "", plan)
	if err != nil {
		return answer{}, planRefusal(err)
	}
	return see(accountPath(a.ID), orPending(a, "account")), nil
}

func accountPath(id int64) string { return "/accounts/" + strconv.FormatInt(id, 10) }

type accountData struct {
	accountView
	Plans    []writer.Plan
	Active   []keyView
	People   []person
	Activity []activity
	// Link is a new invitation's link, shown once.
	Link, Email string
}

// accountActivity is how many rows of the audit log the page of an account shows.
const accountActivity = 10

func (d *Dashboard) accountPage(v *visit) (answer, error) { return d.accountWith(v, "", accountData{}) }

// accountWith shows an account with a message about a form, or a new invitation's link.
func (d *Dashboard) accountWith(v *visit, words string, data accountData) (answer, error) {
	ctx := v.r.Context()
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	if data.accountView, err = d.readCharted(ctx, id); err != nil {
		return answer{}, err
	}
	if data.Plans, err = d.client.Plans(ctx); err != nil {
		return answer{}, err
	}
	if data.Active, _, err = d.readKeys(ctx, id); err != nil {
		return answer{}, err
	}
	if data.People, err = d.readPeople(ctx, id); err != nil {
		return answer{}, err
	}
	latest, err := d.client.AuditPage(ctx, id, writer.ListQuery{Limit: accountActivity})
	if err != nil {
		return answer{}, err
	}
	data.Activity = activities(latest.Data)
	a := answer{page: "account", title: data.Account.Name, error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, nil
}

// changeAccount changes an account and shows it again.
func (d *Dashboard) changeAccount(v *visit, act, detail, done string, change writer.AccountChange) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	ctx := writer.WithAct(v.r.Context(), v.act(act, id, detail))
	changed, err := d.client.ChangeAccount(ctx, id, change)
	return see(accountPath(id), orPending(changed, done)), planRefusal(err)
}

// planRefusal explains that a form named a plan that no longer exists.
func planRefusal(err error) error {
	if errors.Is(err, writer.ErrUnknownPlan) {
		return &refusal{http.StatusUnprocessableEntity, "There is no such plan", "It may have been removed since the page was shown."}
	}
	return err
}

func (d *Dashboard) changePlan(v *visit) (answer, error) {
	plan := v.line("plan")
	return d.changeAccount(v, "change plan", "to "+plan, "plan", writer.AccountChange{Plan: &plan})
}

// suspendPage asks once more, and says what suspending an account does.
func (d *Dashboard) suspendPage(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	view, err := d.readAccount(v.r.Context(), id)
	if err == nil && view.Account.Suspended {
		return see(accountPath(id), ""), nil
	}
	return answer{page: "suspend", title: "Suspend an account", data: view}, err
}

func (d *Dashboard) changeSuspension(v *visit) (answer, error) {
	suspended := v.field("suspended") == "1"
	act, done := "resume account", "resumed"
	if suspended {
		act, done = "suspend account", "suspended"
	}
	return d.changeAccount(v, act, "", done, writer.AccountChange{Suspended: &suspended})
}

// maxNote bounds the note of a change of credits, in characters.
const maxNote = 200

func (d *Dashboard) changeCredits(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	change := writer.CreditChange{Kind: v.line("kind"), Note: printable(v.line("note"), maxNote)}
	change.Amount, err = strconv.ParseInt(v.line("amount"), 10, 64)
	if err != nil || change.Amount == 0 {
		return d.accountWith(v, "The amount is a whole number of credits, below zero to take some.", accountData{})
	}
	detail := fmt.Sprintf("%+d %s %s", change.Amount, change.Kind, change.Note)
	ctx := writer.WithAct(v.r.Context(), v.act("change credits", id, detail))
	_, err = d.client.ChangeCredits(ctx, id, change)
	if errors.Is(err, writer.ErrBeyondBalance) {
		return d.accountWith(v, "Nothing was changed: the account has fewer credits than that.", accountData{})
	}
	if errors.Is(err, writer.ErrMalformed) {
		return d.accountWith(v, "That many credits can't be added or taken. Only bought credits are taken.", accountData{})
	}
	return see(accountPath(id), creditsDone(change.Amount)), err
}

// creditsDone is the message for changed credits.
func creditsDone(amount int64) string {
	if amount < 0 {
		return "taken"
	}
	return "added"
}

func (d *Dashboard) inviteOwner(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	i, words, err := d.invite(v, id)
	if err != nil {
		return answer{}, err
	}
	return d.accountWith(v, words, accountData{Link: d.invitationLink(v, i.Token), Email: i.Email})
}

// inviteAct is the act of an invitation. Its detail is the address, in the form that the invitation has.
const inviteAct = "invite"

// invite invites the e-mail address of the form, or returns a message about it.
func (d *Dashboard) invite(v *visit, account int64) (i writer.Invitation, words string, err error) {
	email := v.line("email")
	ctx := writer.WithAct(v.r.Context(), v.act(inviteAct, account, writer.CanonicalEmail(email)))
	i, err = d.client.Invite(ctx, email, account)
	switch {
	case errors.Is(err, writer.ErrMalformed):
		return i, "That is not an e-mail address.", nil
	case errors.Is(err, writer.ErrTaken):
		return i, "That e-mail address signs in for another account, or as an operator.", nil
	}
	return i, "", err
}

// invitationLink is empty without a token.
func (d *Dashboard) invitationLink(v *visit, token string) string {
	if token == "" {
		return ""
	}
	return d.base(v) + writer.InvitationPath + token
}

func (d *Dashboard) accountCreditsPage(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	return d.creditsOf(v, id, accountPath(id)+"/credits")
}

func (d *Dashboard) accountCreditsCSV(v *visit) (answer, error) {
	id, err := v.id()
	if err != nil {
		return answer{}, err
	}
	return d.writeCreditsCSV(v, id)
}
