package dashboard

import (
	"html/template"
	"strings"
	"sync"

	"regedge/replicate/metering/writer"
	"regedge/web/apidoc"
)

// ownRole is the role of the calls for owners' tokens.
const ownRole = "owner"

// apiPages are the references of the writer's API, with apidoc.Base in them.
type apiPages struct {
	all string
	own string // the calls for owners' tokens
}

// makeAPIPages makes them once for the process. Their samples have made-up tokens, and no form tries a
// call: there is no sandbox of accounts.
var makeAPIPages = sync.OnceValues(func() (apiPages, error) {
	all, err := apidoc.Render(apidoc.Config{Document: writer.Document(), Path: writer.DocumentPath, Token: "reg_operator_…"})
	if err != nil {
		return apiPages{}, err
	}
	own, err := apidoc.Render(apidoc.Config{
		Document: writer.Document(), Path: writer.DocumentPath, Token: "reg_owner_…", Role: ownRole,
		Title: "Your account by API", Summary: "Balance, keys and usage, for programs of yours.",
		Description: "A change takes an `Idempotency-Key` of 16 to 128 characters and is made once under it. Unknown fields and " +
			"parameters are refused. Times are RFC 3339 in UTC, credits whole numbers.",
	})
	return apiPages{string(all), string(own)}, err
})

// apiPage shows the writer's API. It holds no secret, but is for holders of a token.
func (d *Dashboard) apiPage(v *visit) (answer, error) {
	return d.reference(v, "Writer API", d.api.all), nil
}

// ownAPIPage shows the calls for an owner's token.
func (d *Dashboard) ownAPIPage(v *visit) (answer, error) {
	return d.reference(v, "Your account by API", d.api.own), nil
}

func (d *Dashboard) reference(v *visit, title, page string) answer {
	page = strings.ReplaceAll(page, apidoc.Base, template.HTMLEscapeString(d.base(v)))
	return answer{page: "api", title: title, data: template.HTML(page), packed: true}
}
