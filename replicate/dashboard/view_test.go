package dashboard

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
	"regedge/replicate/notice"
)

func TestActsAreToldInWords(t *testing.T) {
	for act, words := range map[string]string{
		"sign in":                       "sign in",
		"POST /v1/accounts":             "create account",
		"POST /v1/accounts/2/keys":      "create key",
		"DELETE /v1/keys/5":             "revoke key 5",
		"DELETE /v1/account/keys/5":     "revoke key 5",
		"POST /v1/accounts/2/tokens":    "create API token",
		"POST /v1/nodes/edge-1/retire":  "retire node edge-1",
		"PUT /v1/nodes/n/read-tokens":   "pass read tokens on to node n",
		"PUT /v1/plans/scale":           "set plan scale",
		"POST /v1/something/else/again": "POST /v1/something/else/again",
		"[":                             "[",
	} {
		require.Equal(t, words, activity{writer.AuditEntry{Act: act}}.Words())
	}
}

// TestEveryChangeByTheAPIHasWords in the pages that list what was done.
func TestEveryChangeByTheAPIHasWords(t *testing.T) {
	path, changes := "", 0
	for line := range strings.Lines(string(writer.Document())) {
		switch line = strings.TrimRight(line, "\n"); {
		case strings.HasPrefix(line, "  /v1/"):
			path = strings.NewReplacer("{id}", "7", "{name}", "one").Replace(strings.TrimSuffix(strings.TrimSpace(line), ":"))
		case line == "    post:", line == "    put:", line == "    patch:", line == "    delete:":
			act := strings.ToUpper(strings.Trim(line, " :")) + " " + path
			if slices.Contains([]string{"POST " + writer.SyncPath, "POST " + writer.ReportPath, "POST " + writer.RequestsPath}, act) {
				continue // of edges: no act
			}
			require.NotEqual(t, act, activity{writer.AuditEntry{Act: act}}.Words())
			changes++
		}
	}
	require.Greater(t, changes, 20, "the document's form is another")
}

func TestParticularsAreWhatWasSaid(t *testing.T) {
	for detail, want := range map[string]string{
		`{"name":"old"}`: "name: old",
		`{"name":"new","per_minute":0,"plan":null}`:              "name: new",
		`{"amount":250000,"kind":"","note":"first"}`:             "amount: 250000, note: first",
		`{"account":2,"email":"a@example.com","operator":false}`: "account: 2, email: a@example.com",
		`{"suspended":true}`:                                     "suspended: true",
		`{"life_seconds":7776000,"monthly_credits":5}`:           "life: 90 days, monthly credits: 5",
		`{"overlap_seconds":3600}`:                               "overlap: 1 hour",
		`{"overlap_seconds":90}`:                                 "overlap: 90 seconds",
		`{"overlap_seconds":"x"}`:                                "overlap: x",
		`{"list":["a"]}`:                                         "list: [a]",
		`a browser {`:                                            "a browser {",
		``:                                                       "",
	} {
		require.Equal(t, want, activity{writer.AuditEntry{Act: "PATCH /v1/keys/5", Detail: detail}}.Particulars())
	}
}

// TestANameThatLooksLikeJSONIsSaidAsItIs: whoever named a key so would hide what was done with it.
func TestANameThatLooksLikeJSONIsSaidAsItIs(t *testing.T) {
	for _, name := range []string{"null", "{}", `{"amount":5}`} {
		for _, act := range []string{"create key", "rename key"} {
			require.Equal(t, name+" (reg_live_abcd…)", activity{writer.AuditEntry{Act: act, Detail: name + " (reg_live_abcd…)"}}.Particulars())
		}
	}
}

func TestAnEdgeIsShownWithWhatItSaidOfItself(t *testing.T) {
	report := &writer.Report{Unsettled: 1234, Ready: "the registry is too old", Replicas: []writer.Replica{
		{Database: "registry", AgeMillis: 1240, Fallback: true}, {Database: "other", AgeMillis: 5},
	}}
	e := newEdgeView(writer.Node{Name: "mumbai-1", Live: true}, report, time.Unix(0, 0))
	require.Equal(t, "1,234", e.Unsettled)
	require.Equal(t, "1.2s (endpoint)", e.Registry)
	require.Equal(t, "none: a file", e.Access)
	require.Equal(t, []string{"not ready", "bad"}, []string{e.State, e.Class})
	for node, want := range map[*writer.Node][2]string{
		{Live: true}: {"live", "good"}, {}: {"away", "warn"}, {Fenced: true, Live: true}: {"fenced", "bad"}, {Retired: true, Fenced: true}: {"retired", ""},
	} {
		e := newEdgeView(*node, nil, time.Unix(0, 0))
		require.Equal(t, want, [2]string{e.State, e.Class})
	}
	report.Replicas[0] = writer.Replica{Database: "registry", AgeMillis: -1}
	require.Equal(t, "unknown", newEdgeView(writer.Node{}, report, time.Unix(0, 0)).Registry)
	require.Empty(t, newEdgeView(writer.Node{}, nil, time.Unix(0, 0)).Unsettled, "nothing was said yet")
}

func TestAgesAreToldInTheLargestUnitThatIsExactEnough(t *testing.T) {
	for age, want := range map[time.Duration]string{
		-time.Second: "0 seconds ago", time.Second: "1 second ago", 119 * time.Second: "119 seconds ago", 2 * time.Minute: "2 minutes ago",
		119 * time.Minute: "119 minutes ago", 2 * time.Hour: "2 hours ago", 47 * time.Hour: "47 hours ago", 48 * time.Hour: "2 days ago", 5000 * time.Hour: "208 days ago",
	} {
		require.Equal(t, want, ago(age))
	}
}

// TestAMonthWithoutEntriesEndsAsItBegan, whatever came later.
func TestAMonthWithoutEntriesEndsAsItBegan(t *testing.T) {
	end := time.Unix(0, 0)
	require.Equal(t, statement{Opening: 10, Closing: 10}, balanced([]entry{{At: end, Amount: 5}}, 15, end))
}

// TestWhatKeysSpentOnADayIsInTheOrderOfTheirNames, and each balance follows from the one before.
func TestWhatKeysSpentOnADayIsInTheOrderOfTheirNames(t *testing.T) {
	day := time.Unix(0, 0)
	got := balanced([]entry{{At: day, Key: "site", Amount: -3}, {At: day, Key: "billing", Amount: -2}}, 5, day.Add(1))
	require.Equal(t, statement{Opening: 10, Closing: 5, Entries: []entry{
		{At: day, Key: "billing", Amount: -2, Balance: 8}, {At: day, Key: "site", Amount: -3, Balance: 5},
	}}, got)
}

// TestANoticeIsRetryingUntilItIsGivenUp.
func TestANoticeIsRetryingUntilItIsGivenUp(t *testing.T) {
	at := time.Unix(0, 0)
	for want, d := range map[string]notice.Delivery{
		"waits": {Next: &at}, "retrying": {Next: &at, Attempts: 1}, "delivered": {Attempts: 2, Delivered: &at}, "given up": {Attempts: 2},
	} {
		require.Equal(t, want, deliveryView{d}.State()[1])
	}
}

// TestTheLastUseOfAKeyIsAsExactAsItIsKnown: by the hour, of the last 90 days.
func TestTheLastUseOfAKeyIsAsExactAsItIsKnown(t *testing.T) {
	now := time.Date(2026, 10, 20, 12, 30, 0, 0, time.UTC)
	hour := now.Unix() / 3600
	for _, c := range []struct {
		hour int64
		age  time.Duration
		want string
	}{
		{0, lookBack - 1, "never"}, {0, lookBack, "not in the last 90 days"}, {hour, 0, "within this hour"},
		{hour - 1, 0, "within the last two hours"}, {hour - 2, 0, "2 hours ago"}, {hour - 23, 0, "23 hours ago"},
		{hour - 24, 0, "19 Oct 2026"}, {hour + 1, 0, "within this hour"}, // by the clock of its edge
	} {
		require.Equal(t, c.want, lastUse(c.hour, writer.Key{Created: now.Add(-c.age)}, now))
	}
}

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"billing", "a\r\nb", "\u202ex\u2066", "\xff\x00", "क्\u200dष", "日本語"} {
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = min(max(limit, 0), 1000)
		kept := printable(text, limit)
		require.True(t, writer.Printable(kept))
		require.LessOrEqual(t, utf8.RuneCountInString(kept), limit)
		require.Equal(t, kept, printable(kept, limit))
		if writer.Printable(text) && utf8.RuneCountInString(text) <= limit {
			require.Equal(t, text, kept)
		}
	})
}

// TestNobodyMakesAFormTokenWithoutACookie: its key would be empty, and known to everybody.
func TestNobodyMakesAFormTokenWithoutACookie(t *testing.T) {
	require.True(t, validFormToken("secret", "number."+formMAC("secret", "number")))
	for _, token := range []string{"number." + formMAC("", "number"), "", "."} {
		require.False(t, validFormToken("", token), token)
		require.False(t, validFormToken("secret", token), token)
	}
}

// TestAPhoneShowsTheLastDays of the chart of an account.
func TestAPhoneShowsTheLastDays(t *testing.T) {
	days := emptyDays(20_000)
	days[len(days)-1].Found = 5
	c := newChart(days)
	require.Len(t, c.Narrow.Bars, phoneDays)
	require.NotEmpty(t, c.Narrow.Bars[phoneDays-1].Parts)
	require.Contains(t, c.Narrow.Summary, "Calls of the last 14 days: 5,")
	require.NotEmpty(t, c.Wide.Bars[chartDays-1].Parts)
}

// TestBothStepsOfASignInNameTheBrowser, of which the log has the whole User-Agent.
func TestBothStepsOfASignInNameTheBrowser(t *testing.T) {
	const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	for _, act := range []string{signInAct, passwordAct} {
		require.Equal(t, "Firefox on Linux", activity{writer.AuditEntry{Act: act, Detail: agent}}.Particulars(), act)
	}
	require.Equal(t, agent, activity{writer.AuditEntry{Act: "rename key", Detail: agent}}.Particulars())
}

// TestNoSpreadsheetTakesATextForAFormula, whatever it begins with.
func TestNoSpreadsheetTakesATextForAFormula(t *testing.T) {
	for _, text := range []string{"=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1"} {
		require.Equal(t, "'"+text, inert(text))
	}
	for _, text := range []string{"", "billing", "1=1", "'=1"} {
		require.Equal(t, text, inert(text))
	}
}

// TestALinkHasTheSchemeOfItsPage: an invitation is a secret.
func TestALinkHasTheSchemeOfItsPage(t *testing.T) {
	plain, encrypted := httptest.NewRequest(http.MethodGet, "http://here.example/", nil), httptest.NewRequest(http.MethodGet, "https://here.example/", nil)
	for _, c := range []struct {
		secure bool
		r      *http.Request
		want   string
	}{{false, plain, "http://here.example"}, {false, encrypted, "https://here.example"}, {true, plain, "https://here.example"}} {
		d := &Dashboard{config: Config{Secure: c.secure}}
		require.Equal(t, c.want, d.base(&visit{r: c.r}))
	}
}

// TestEachErrorOfTheWriterIsToldAsWhatItIs: whether to wait, to send the form again, or to look first.
func TestEachErrorOfTheWriterIsToldAsWhatItIs(t *testing.T) {
	d, v := &Dashboard{config: Config{}.withDefaults()}, &visit{r: httptest.NewRequest(http.MethodPost, "/keys", nil)}
	for _, c := range []struct {
		err  error
		want *refusal
	}{
		{writer.ErrNotFound, errMissing}, {writer.ErrMalformed, errFormBroken}, {writer.ErrKeyReused, errSentBefore}, {errBusy, errCrowded},
		{writer.ErrTooMany, errTooMany}, {writer.ErrUnavailable, errOffline}, {writer.ErrFenced, errOffline}, {writer.ErrInternal, errBroken},
		{fmt.Errorf("%w: %w", writer.ErrUncertain, writer.ErrUnavailable), errUncertain}, {errOldForm, errOldForm},
	} {
		require.Same(t, c.want, d.refusalOf(v, fmt.Errorf("add key: %w", c.err)), c.err)
	}
}

// TestTheAnswersToFormsAreBounded, and the newest is kept.
func TestTheAnswersToFormsAreBounded(t *testing.T) {
	var f finished
	now := time.Now()
	for i := range 2*maxFinished + 1 {
		v := &visit{r: httptest.NewRequest(http.MethodPost, fmt.Sprint("/", i), nil)}
		f.put(v, now, answer{})
		_, found := f.get(v, now)
		require.True(t, found)
	}
	require.LessOrEqual(t, len(f.forms), maxFinished)
}
