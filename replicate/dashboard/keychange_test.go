package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var shownSecret = regexp.MustCompile(`id="secret" value="(reg_live_[^"]+)"`)

func TestAnOwnerManagesAKey(t *testing.T) {
	w := newWorld(t)
	b, account := w.owner("Acme", 10)
	for _, end := range []string{`value="">never<`, `value="1">in a day<`, `value="7">in 7 days<`, `value="30">in 30 days<`, `value="90">in 90 days<`, `value="365">in a year<`} {
		require.Contains(t, strings.ReplaceAll(b.get("/keys").body, " selected", ""), end)
	}
	first := shownSecret.FindStringSubmatch(b.submit("/keys", "/keys", "name", "server", "days", "30").body)
	require.NotNil(t, first, b.seen.body)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit("/keys", "/keys", "name", "fast", "per-minute", "1000").StatusCode)
	require.Contains(t, b.seen.text(), "A limit is a number, and requests a minute are at most those of your plan.")
	keys, err := w.client.Keys(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.Equal(t, w.clock().AddDate(0, 0, 30), *keys[0].Expires)
	at := fmt.Sprint("/keys/", keys[0].ID)
	require.Contains(t, b.get("/keys").body, "19 Nov 2026, 12:30</time>")
	require.Contains(t, b.seen.body, `<th scope="row"><a href="`+at+`">server</a></th>`, "a phone shows the first column alone")

	require.Contains(t, b.submit(at, at+"/name", "name", "billing").text(), "The key is renamed.")
	require.Contains(t, b.seen.body, "<h1>billing</h1>")
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/name", "name", " ").StatusCode)
	require.Contains(t, b.submit(at, at+"/end", "days", "").text(), "The end of the key is changed.")
	require.Contains(t, b.seen.body, "<dt>Ends</dt><dd>never</dd>")

	require.Contains(t, b.get(at).text(), "everywhere")
	require.Contains(t, b.submit(at, at+"/addresses", "addresses", "192.0.2.9/24, 2001:db8::7").text(), "The allowed addresses of the key are changed.")
	require.Equal(t, 1, w.count(`SELECT count(*) FROM audit WHERE act = 'change addresses of key' AND detail LIKE 'billing (%) to 192.0.2.9/24, 2001:db8::7'`))
	require.Contains(t, b.seen.body, `value="192.0.2.0/24, 2001:db8::7/128"`)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/addresses", "addresses", "192.0.2.0/33").StatusCode)
	require.Contains(t, b.seen.text(), "Those are not networks or addresses")
	require.Contains(t, b.seen.body, `name="addresses" value="192.0.2.0/33"`, "what was typed is there to be mended")
	require.Contains(t, b.seen.body, `name="name" value="billing"`, "and the other forms are as they were")
	b.submit(at, at+"/addresses", "addresses", "::1\t10.0.0.1\r\n10.0.0.2")
	require.Contains(t, b.get(at).body, `value="::1/128, 10.0.0.1/32, 10.0.0.2/32"`, "cells of a spreadsheet, and lines")
	b.submit(at, at+"/addresses", "addresses", "")
	require.Contains(t, b.get(at).body, "<dt>Allowed from</dt><dd>everywhere</dd>")

	require.Contains(t, b.submit(at, at+"/limits", "per-minute", "7", "monthly-credits", "1000").text(), "The limits of the key are changed.")
	require.Contains(t, b.seen.body, `<dt>Requests a minute</dt><dd>7</dd>`)
	require.Contains(t, b.seen.body, `<dt>Credits a month</dt><dd>1,000</dd>`)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/limits", "monthly-credits", "-1").StatusCode)
	require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/limits", "monthly-credits", "0").StatusCode, "0 is not any number")
	for _, wrong := range []string{"x", "-1", "0", "1000000"} {
		require.Equal(t, http.StatusUnprocessableEntity, b.submit(at, at+"/limits", "per-minute", wrong).StatusCode)
		require.Contains(t, b.seen.text(), "A limit is a number")
	}
	b.submit(at, at+"/limits", "per-minute", "")
	require.NotContains(t, b.get(at).body, "<dt>Requests a minute</dt>")
	require.NotContains(t, b.seen.body, "<dt>Credits a month</dt>")

	p := b.submit(at, at+"/rotate", "hours", "24")
	second := shownSecret.FindStringSubmatch(p.body)
	require.NotNil(t, second, p.body)
	require.NotEqual(t, first[1], second[1])
	require.Contains(t, p.body, "The secret before works beside it until <time")
	require.Contains(t, b.get(at).body, first[1][:13]+"…</code> works until")
	for _, wrong := range [][3]string{{"/end", "days", "x"}, {"/end", "days", "3651"}, {"/end", "days", "0"}, {"/rotate", "hours", "0"}, {"/rotate", "hours", "721"},
		{"/rotate", "hours", "2251799813685248"}} { // the last would be no time at all in nanoseconds
		require.Equal(t, http.StatusBadRequest, b.submit(at, at+wrong[0], wrong[1], wrong[2]).StatusCode, wrong)
	}
	require.Equal(t, 4, w.count(`SELECT count(*) FROM audit WHERE account = ? AND actor = 'acme@example.com'
		AND act IN ('create key', 'rename key', 'change end of key', 'rotate key')`, account))

	require.NotContains(t, b.get("/").body, "Give it a later end")
	b.get(at)
	form := b.form("days", "3650")
	require.Contains(t, b.do(http.MethodPost, at+"/end", form).text(), "The end of the key is changed.")
	w.pass(20 * time.Second)
	require.Contains(t, b.do(http.MethodPost, at+"/end", form).text(), "The end of the key is changed.", "the same form once more")
	w.pass(-20 * time.Second)
	b.submit(at, at+"/end", "days", "1")
	require.Contains(t, b.get("/").body, `">billing</a> ends on <time datetime="2026-10-21T12:30:00Z"`)
	b.get(at)
	w.pass(25 * time.Hour)
	b.signIn("acme@example.com", password)
	require.Equal(t, http.StatusNotFound, b.get(at).StatusCode)
	require.Contains(t, b.get("/keys").body, "</time>, expired</td>")
	require.NotContains(t, b.get("/").body, "Give it a later end", "an expired key is no warning")
	stranger, _ := w.owner("Other", 0)
	for _, path := range []string{"/name", "/end", "/addresses", "/limits", "/rotate"} {
		require.Equal(t, http.StatusNotFound, stranger.submit("/keys", at+path, "name", "mine", "days", "1", "hours", "1").StatusCode)
	}
}
