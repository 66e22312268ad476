package dashboard

import (
	"cmp"
	"errors"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"regedge/replicate/metering/writer"
)

// requestsShown is how many requests a page has.
const requestsShown = 100

// requestsData is the page of the last requests of an account's keys.
type requestsData struct {
	Keys     []keyChoice
	Key      int64 // 0 for all
	Search   string
	Requests []requestView
	Next     template.URL // query of the next page, empty on the last
}

type requestView struct {
	writer.Request
	KeyWords string
}

func (d *Dashboard) requestsPage(v *visit) (answer, error) {
	given := v.r.URL.Query()
	data := requestsData{Search: strings.TrimSpace(printable(given.Get("search"), maxForm))}
	var err error
	if data.Key, data.Keys, err = d.chosenKey(v, v.user.Account); err != nil {
		return answer{}, err
	}
	of := writer.RequestQuery{Account: v.user.Account, Key: data.Key}
	p, err := writer.ListRequests(v.r.Context(), d.config.Ledger, of, writer.ListQuery{Search: data.Search, Limit: requestsShown, Cursor: given.Get("cursor")})
	if errors.Is(err, writer.ErrMalformed) {
		return answer{}, errMissing
	}
	names, failed := d.readKeyWords(v.r.Context(), v.user.Account, keysOf(p.Data, func(r writer.Request) int64 { return r.Key }))
	if err = cmp.Or(err, failed); err != nil {
		return answer{}, err
	}
	for _, r := range p.Data {
		data.Requests = append(data.Requests, requestView{r, names[r.Key]})
	}
	if p.Next != "" {
		next := url.Values{"cursor": {p.Next}, "search": {data.Search}}
		if data.Key != 0 {
			next.Set("key", strconv.FormatInt(data.Key, 10))
		}
		data.Next = template.URL(next.Encode())
	}
	return answer{page: "requests", title: "Requests", data: data}, nil
}
