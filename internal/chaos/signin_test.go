package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
)

// TestLookupsBesideAttackersAtTheSignIn has 40 clients try passwords in a process that does everything,
// where each try takes 64 MiB and a core for a moment. A customer's answers beside it are 200, and p99 is
// at most three times that without them, or mostP99.
func TestLookupsBesideAttackersAtTheSignIn(t *testing.T) {
	if !*alone {
		t.Skip("compares times: go test ./internal/chaos -run BesideAttackers -alone")
	}
	b, err := buildOnce()
	require.NoError(t, err)
	c := &cluster{t: t, dir: t.TempDir(), built: b}
	api := testkit.FreePort(t)
	dev := c.process("dev", "dev", "--registry", b.registry, "--data", c.path("data"), "--writer-listen", api, "--log", "errors")
	dev.start()
	dev.await("/readyz", http.StatusOK)
	var token []string
	eventually(t, func() bool {
		token = regexp.MustCompile(`REGEDGE_TOKEN=(\S+)`).FindStringSubmatch(dev.Tail())
		return token != nil
	}, func() string { return "it prints its operator's token" })
	c.client = writer.NewClient("http://"+api, token[1], nil)
	customer := c.account(1_000_000)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	for try := 1; ; try++ {
		before := dev.beside(t, client, "http", customer, *attackLength)
		ctx, cancel := context.WithCancel(t.Context())
		var refused, busy atomic.Int64
		var all sync.WaitGroup
		for n := range 40 {
			all.Go(func() { signIns(ctx, "http://"+api, n, &refused, &busy) })
		}
		during := dev.beside(t, client, "http", customer, *attackLength)
		cancel()
		all.Wait()
		t.Logf("beside %d wrong passwords and %d that were told to wait: p50 %v, p99 %v; without p50 %v, p99 %v; %d MB",
			refused.Load(), busy.Load(), during.p50, during.p99, before.p50, before.p99, during.memory>>20)
		require.Empty(t, during.failed, "answers to the customer that are not 200; 0 is none")
		require.Positive(t, refused.Load(), "passwords are compared")
		require.Positive(t, busy.Load(), "40 are more than may wait")
		if during.p99 <= max(3*before.p99, *mostP99) && during.memory < mostMemory {
			return
		}
		require.Less(t, try, tries, "p99 %v, %v without the attack; %d MB", during.p99, before.p99, during.memory>>20)
	}
}

// formToken is the token of a form.
var formToken = regexp.MustCompile(`name="token" value="([^"]+)"`)

// signIns tries one password after the other, each for another e-mail address, until ctx is done. It
// counts those that were wrong, and those that were not compared since too many try.
func signIns(ctx context.Context, dashboard string, n int, refused, busy *atomic.Int64) {
	jar, _ := cookiejar.New(nil) // without options there is no error
	client := &http.Client{Jar: jar, Transport: &http.Transport{DialContext: dialer(manyAddresses(n)).DialContext}}
	defer client.CloseIdleConnections()
	fetch := func(method string, form url.Values) (status int, page []byte) {
		request, err := http.NewRequestWithContext(ctx, method, dashboard+"/sign-in", nil)
		if err != nil {
			return 0, nil
		}
		if form != nil {
			request.Body = io.NopCloser(strings.NewReader(form.Encode()))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		response, err := client.Do(request)
		if err != nil {
			return 0, nil
		}
		defer response.Body.Close()
		page, _ = io.ReadAll(response.Body)
		return response.StatusCode, page
	}
	for i := 0; ctx.Err() == nil; i++ {
		_, page := fetch(http.MethodGet, nil)
		token := formToken.FindSubmatch(page)
		if token == nil {
			continue
		}
		status, _ := fetch(http.MethodPost, url.Values{
			"token": {string(token[1])}, "email": {fmt.Sprintf("%d.%d@attacker.test", n, i)}, "password": {"let me in, please"},
		})
		switch status {
		case http.StatusServiceUnavailable:
			busy.Add(1)
		case http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusUnauthorized:
			refused.Add(1)
		}
	}
}
