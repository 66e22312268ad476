package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"regedge/replicate/metering/writer"
)

// asked are commands with their flags, and what each asks of the writer last: method, path and body.
var asked = []struct{ line, want string }{
	{"account add Acme --plan growth --email a@b.example", `POST /v1/accounts {"email":"a@b.example","name":"Acme","plan":"growth"}`},
	{"account list --search acme --limit 3 --cursor 7", `GET /v1/accounts?cursor=7&limit=3&search=acme`},
	{"account list --all", `GET /v1/accounts?limit=500`},
	{"account change 7 --name Acme --email a@b.example --plan growth", `PATCH /v1/accounts/7 {"name":"Acme","email":"a@b.example","plan":"growth"}`},
	{"account change 7 --email a@b.example", `PATCH /v1/accounts/7 {"email":"a@b.example"}`},
	{"account suspend 7", `PATCH /v1/accounts/7 {"suspended":true}`},
	{"account resume 7", `PATCH /v1/accounts/7 {"suspended":false}`},
	{"account invite a@b.example --account 7 --reset-two-factor --dashboard-url https://b.example", `POST /v1/invitations {"account":7,"email":"a@b.example","operator":false,"reset_two_factor":true}`},
	{"account invite a@b.example --operator", `POST /v1/invitations {"account":0,"email":"a@b.example","operator":true,"reset_two_factor":false}`},
	{"key add 7 --name web --expires 2030-01-31 --allow 192.0.2.0/24 --per-minute 3 --monthly-credits 5", `POST /v1/accounts/7/keys {"name":"web","expires":"2030-01-31T00:00:00Z","allowed_addresses":["192.0.2.0/24"],"per_minute":3,"monthly_credits":5}`},
	{"key list 7 --search web --limit 3 --cursor 7", `GET /v1/accounts/7/keys?cursor=7&limit=3&search=web`},
	{"key list 7 --all", `GET /v1/accounts/7/keys?limit=500`},
	{"key rename 7 web", `PATCH /v1/keys/7 {"name":"web"}`},
	{"key expire 7 --at 2030-01-31T12:00:00Z", `PATCH /v1/keys/7 {"expires":"2030-01-31T12:00:00Z"}`},
	{"key expire 7 --never", `PATCH /v1/keys/7 {"never_expires":true}`},
	{"key rotate 7 --overlap 36h", `POST /v1/keys/7/rotate {"overlap_seconds":129600}`},
	{"key rotate 7 --overlap 0s", `POST /v1/keys/7/rotate {"overlap_seconds":0}`},
	{"key allow 7 192.0.2.0/24", `PATCH /v1/keys/7 {"allowed_addresses":["192.0.2.0/24"]}`},
	{"key allow 7 --anywhere", `PATCH /v1/keys/7 {"allowed_addresses":[]}`},
	{"key limit 7 --per-minute 3 --monthly-credits 5", `PATCH /v1/keys/7 {"per_minute":3,"monthly_credits":5}`},
	{"key limit 7 --per-minute 0", `PATCH /v1/keys/7 {"per_minute":0}`},
	{"key requests --key 7 --account 8 --search web --limit 3 --cursor 9", `GET /v1/requests?account=8&cursor=9&key=7&limit=3&search=web`},
	{"key requests --all", `GET /v1/requests?limit=500`},
	{"key revoke 7", `DELETE /v1/keys/7`},
	{"plan add new --per-minute 3 --monthly-volume 5", `PUT /v1/plans/new {"id":"new","api_access":true,"per_minute":3,"monthly_volume":5,"email":false,"phone":false}`},
	{"plan add new --per-minute 3 --monthly-volume 5 --no-api --email", `PUT /v1/plans/new {"id":"new","api_access":false,"per_minute":3,"monthly_volume":5,"email":true,"phone":false}`},
	{"plan add new --per-minute 3 --monthly-volume 5 --api --phone", `PUT /v1/plans/new {"id":"new","api_access":true,"per_minute":3,"monthly_volume":5,"email":false,"phone":true}`},
	{"plan change held --per-minute 3", `PATCH /v1/plans/held {"per_minute":3}`},
	{"plan change held --monthly-volume 5 --no-api", `PATCH /v1/plans/held {"api_access":false,"monthly_volume":5}`},
	{"plan change held --email", `PATCH /v1/plans/held {"email":true}`},
	{"plan change held --phone", `PATCH /v1/plans/held {"phone":true}`},
	{"credit add 7 5 --note thanks", `POST /v1/accounts/7/credits {"amount":5,"kind":"bought","note":"thanks"}`},
	{"credit add 7 5 --compensate", `POST /v1/accounts/7/credits {"amount":5,"kind":"compensated","note":""}`},
	{"credit take 7 5 --note twice", `POST /v1/accounts/7/credits {"amount":-5,"kind":"bought","note":"twice"}`},
	{"credit take 7 5 --at-most", `POST /v1/accounts/7/credits {"amount":-5,"kind":"bought","note":"","at_most":true}`},
	{"credit doubts --search web --limit 3 --cursor R7", `GET /v1/unresolved?cursor=R7&limit=3&search=web`},
	{"credit doubts --all", `GET /v1/unresolved?limit=500`},
	{"credit resolve R7", `POST /v1/unresolved/R7/credit`},
	{"trust operator add olga", `POST /v1/tokens {"life_seconds":7776000,"name":"olga","role":"read"}`},
	{"trust operator add olga --role nodes --life 48h", `POST /v1/tokens {"life_seconds":172800,"name":"olga","role":"nodes"}`},
	{"trust operator end olga", `DELETE /v1/tokens/olga`},
	{"node add mumbai", `POST /v1/nodes {"name":"mumbai"}`},
	{"node list --search mumbai --limit 3 --cursor delhi", `GET /v1/nodes?cursor=delhi&limit=3&search=mumbai`},
	{"node list --all", `GET /v1/nodes?limit=500`},
	{"node token mumbai", `POST /v1/nodes/mumbai/token`},
	{"node retire mumbai", `POST /v1/nodes/mumbai/retire {"old_epochs":false}`},
	{"node retire mumbai --old-epochs", `POST /v1/nodes/mumbai/retire {"old_epochs":true}`},
	{"usage --account 7 --from 2030-01-31 --to 2030-03-01", `GET /v1/usage?account=7&from=2030-01-31T00%3A00%3A00Z&to=2030-03-01T00%3A00%3A00Z`},
	{"usage --account 7 --from 2025-01-31 --to 2025-03-01 --by day,key --csv", `GET /v1/accounts/7/usage?by=day%2Ckey&from=2025-01-31&limit=500&to=2025-02-28`},
	{"audit --account 7 --search web --limit 3 --cursor 9", `GET /v1/audit?account=7&cursor=9&limit=3&search=web`},
	{"audit --all", `GET /v1/audit?limit=500`},
}

// TestWhatIsAskedOfTheWriter with each flag: one that is lost on the way, or taken for another, would change something else
// than was meant.
func TestWhatIsAskedOfTheWriter(t *testing.T) {
	said := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said = strings.TrimSpace(r.Method + " " + r.URL.String() + " " + strings.TrimSpace(string(body)))
		w.Header().Set(writer.RequestIDHeader, "R")
		switch {
		case r.URL.Path == "/v1/plans":
			io.WriteString(w, `[{"id":"held","api_access":true,"per_minute":1,"monthly_volume":2}]`)
		case r.URL.Path == "/v1/usage":
			io.WriteString(w, `[{}]`)
		default:
			io.WriteString(w, `{"data":[{}]}`)
		}
	}))
	defer server.Close()
	var commands []string        // those that call the writer
	untried := map[string]bool{} // their flags, such as account add --plan
	for _, command := range commandTree(t).Leaves(true) {
		words, flags := commandWords(command), slices.Concat(command.AllFlags(true)...)
		calls := slices.ContainsFunc(flags, func(f *kong.Flag) bool { return f.Name == "writer" })
		if !calls || slices.Contains(triedElsewhere, strings.Fields(words)[0]) || words == "trust renew" {
			continue
		}
		commands = append(commands, words)
		for _, flag := range flags {
			untried[words+" --"+flag.Name] = !slices.Contains(flagsOfAll, flag.Name)
		}
	}
	for _, c := range asked {
		args := strings.Fields(c.line)
		n := slices.IndexFunc(commands, func(words string) bool { return strings.HasPrefix(c.line, words+" ") })
		require.GreaterOrEqual(t, n, 0, "there is no such command: %s", c.line)
		words := commands[n]
		for _, arg := range args {
			untried[words+" "+strings.Replace(arg, "--no-", "--", 1)] = false
		}
		args = append(args, "--writer", server.URL, "--token", "a-token")
		if _, asks := untried[words+" --yes"]; asks {
			args = append(args, "--yes", "--idempotency-key", "so-that-nothing-is-asked")
		}
		code, out := ran(args...)
		require.Equal(t, exitOK, code, "%s: %s", c.line, out)
		require.Equal(t, c.want, said, c.line)
	}
	delete(untried, "node add --trust") // of which the writer is told nothing
	for flag, is := range untried {
		require.False(t, is, "no line above has %s", flag)
	}
}

// flagsOfAll have many commands; other tests try them.
var flagsOfAll = strings.Fields("help writer token token-file json yes idempotency-key")

// triedElsewhere are services, and commands that ask more than the writer.
var triedElsewhere = []string{"edge", "meter", "doctor", "status"}
