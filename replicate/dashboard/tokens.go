package dashboard

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"regedge/replicate/metering/writer"
)

// tokensPath is the page of an owner's tokens.
const tokensPath = "/settings/tokens"

// maxTokenDays is the longest life that the form gives a token.
const maxTokenDays = 365

type tokensData struct {
	Active, Ended []writer.OwnerToken
	Max           int
}

func (d *Dashboard) tokensPage(v *visit) (answer, error) { return d.tokens(v, "") }

func (d *Dashboard) tokens(v *visit, words string) (answer, error) {
	list, err := d.client.OwnerTokens(v.r.Context(), v.user.Account)
	data := tokensData{Max: writer.MaxOwnerTokens}
	for i := len(list) - 1; i >= 0; i-- {
		if t := list[i]; t.Ended {
			data.Ended = append(data.Ended, t)
		} else {
			data.Active = append(data.Active, t)
		}
	}
	data.Ended = data.Ended[:min(len(data.Ended), maxRevoked)]
	a := answer{page: "tokens", title: "API tokens", error: words, data: data}
	if words != "" {
		a.status = http.StatusUnprocessableEntity
	}
	return a, err
}

type newTokenData struct {
	writer.NewOwnerToken
	Base string // of the writer's API
}

// makerName names the person who made a token, as its owner sees it: operators are not named.
func makerName(by string) string {
	if strings.Contains(by, "@") {
		return by
	}
	return "the service"
}

// makeToken makes a token for the owner's programs and shows it, once.
func (d *Dashboard) makeToken(v *visit) (answer, error) {
	name := v.line("name")
	if words := wordsOfName(name, "The token needs a name: what it is for."); words != "" {
		return d.tokens(v, words)
	}
	days, err := strconv.Atoi(v.line("days"))
	role := writer.Role(v.line("role"))
	if err != nil || days < 1 || days > maxTokenDays || role != writer.RoleRead && role != writer.RoleAll {
		return answer{}, errFormBroken
	}
	ctx := writer.WithAct(v.r.Context(), v.act("create API token", v.user.Account, name))
	made, err := d.client.AddOwnerToken(ctx, v.user.Account, name, role, time.Duration(days)*24*time.Hour)
	if errors.Is(err, writer.ErrTooManyTokens) {
		return d.tokens(v, "There are 10 active tokens, the most an account can have. End one first.")
	}
	return answer{page: "new-token", title: "Your new API token", data: newTokenData{made, d.base(v)}}, err
}

// ownToken finds a token of the visitor's account by the id in the path. Any other answers 404.
func (d *Dashboard) ownToken(v *visit) (writer.OwnerToken, error) {
	id, err := v.id()
	if err != nil {
		return writer.OwnerToken{}, err
	}
	list, err := d.client.OwnerTokens(v.r.Context(), v.user.Account)
	if err != nil {
		return writer.OwnerToken{}, err
	}
	for _, t := range list {
		if t.ID == id {
			return t, nil
		}
	}
	return writer.OwnerToken{}, errMissing
}

func (d *Dashboard) endTokenPage(v *visit) (answer, error) {
	t, err := d.ownToken(v)
	if err == nil && t.Ended {
		return answer{}, errMissing
	}
	return answer{page: "end-token", title: "End an API token", data: t}, err
}

func (d *Dashboard) endToken(v *visit) (answer, error) {
	t, err := d.ownToken(v) // ended ones too: the form may come a second time
	if err != nil {
		return answer{}, err
	}
	ctx := writer.WithAct(v.r.Context(), v.act("end API token", v.user.Account, t.Name))
	_, err = d.client.EndOwnerToken(ctx, t.ID)
	return see(tokensPath, "token-ended"), err
}
