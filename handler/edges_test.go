package handler

import (
	"encoding/base32"
	"encoding/json"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/handler/names"
	"regedge/schema"
)

func TestHexadecimalDigitsAreTwentyTwoBytes(t *testing.T) {
	for c := range 256 {
		want := byte(255)
		if n, err := strconv.ParseUint(string([]byte{byte(c)}), 16, 8); err == nil {
			want = byte(n)
		}
		require.Equal(t, want, unhex(byte(c)), "%q", c)
	}
}

func TestAnLLPIsReadOrNotFound(t *testing.T) {
	b := newBench()
	row := make([]Value, 14)
	row[0] = text("r-1")
	b.registry.rows[llpStatement] = row
	require.Equal(t, LLPNotFound, problemOf(t, b.get("/v1/llps/AAA-1234")))
	row[1], row[2], row[11], row[12] = text("AAA-1234"), text("EXAMPLE LLP"), text("[]"), integer(0)
	r := b.get("/v1/llps/aaa1234")
	require.Equal(t, 200, r.Status)
	var answer struct{ Data map[string]any }
	require.NoError(t, json.Unmarshal(r.Body, &answer))
	require.Equal(t, "EXAMPLE LLP", answer.Data["llp_name"])
	require.Nil(t, answer.Data["last_updated"])
	require.Equal(t, text("AAA-1234"), b.registry.args[1][0])
}

// TestMadeUpMatchesComeBeforeRegisteredOnes, and do not hide that the registry can't be read.
func TestMadeUpMatchesComeBeforeRegisteredOnes(t *testing.T) {
	sandbox := func(b *bench, target string) *Response {
		return b.Serve(request("GET", target, "Authorization", "Bearer "+ident.SandboxKey))
	}
	values := func(r *Response) (list []string) {
		require.Equal(t, 200, r.Status, "%s", r.Body)
		var answer struct{ Data []struct{ Value string } }
		require.NoError(t, json.Unmarshal(r.Body, &answer), "%s", r.Body)
		for _, m := range answer.Data {
			list = append(list, m.Value)
		}
		return list
	}
	const tea, one = "/v1/search/companies?name=sandbox+tea+made+up", "/v1/search/llps?llpin="
	b := newBench()
	require.Equal(t, []string{"U72900ZZ2019PTC000013", "x"}, values(sandbox(b, tea)))
	require.EqualValues(t, 4, b.registry.args[0][8].Int, "one of five places is taken")
	b.registry.rows[searchStatement][1] = text("[]")
	require.Equal(t, []string{"U72900ZZ2019PTC000013"}, values(sandbox(b, tea)))
	require.Empty(t, values(b.get(tea)), "live keys find none")
	require.Equal(t, []string{SandboxLLP}, values(sandbox(b, one+SandboxLLP)))
	require.Empty(t, values(sandbox(b, one+"AAA-1234")))
	b.registry.err = errors.New("away")
	require.Equal(t, RegistryUnavailable, problemOf(t, sandbox(b, tea)))
	require.Equal(t, RegistryUnavailable, problemOf(t, sandbox(b, one+SandboxLLP)))
	require.Equal(t, charge.Failed, b.meter.asked[len(b.meter.asked)-1].Outcome)
}

func TestSandboxTiersAreThoseOfTheSearchOrder(t *testing.T) {
	for form, tier := range map[string]int{
		"sandbox tea": 0, "sandbox tea private limited": 0, "sandbox tea llp": 0,
		"sandbox tea house": 1, "sandbox teapot": 2, "sandbox green tea": 3, "sandbox green teapot": 3, "sandbox coffee": noSandboxTier,
		"tea": noSandboxTier,
	} {
		require.Equal(t, tier, sandboxTier("sandbox tea", form), form)
	}
}

// TestARequestIDHoldsAllOfItsRandomBits, as base32.
func TestARequestIDHoldsAllOfItsRandomBits(t *testing.T) {
	crockford := base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)
	random := &countingRandom{n: 100}
	id := NewRequestID(fixedClock(1), random)
	require.Equal(t, crockford.EncodeToString([]byte{101, 102, 103, 104, 105, 106, 107, 108, 109, 110}), id[10:])
}

// TestLiveKeysFindNoMadeUpRecords, whatever the registry has under their numbers.
func TestLiveKeysFindNoMadeUpRecords(t *testing.T) {
	b := newBench()
	require.Contains(t, string(b.get("/v1/directors/"+SandboxDirector).Body), `"name":"ASHA"`)
	_, ok := matchRoute("/v1/companies//")
	require.False(t, ok)
	require.Equal(t, "******5678", maskPhone("1234 5 6-7 8"))
}

// TestTheSandboxFindsMadeUpRecordsBesideRegisteredOnes, with the dates that they are made up with.
func TestTheSandboxFindsMadeUpRecordsBesideRegisteredOnes(t *testing.T) {
	b := newBench()
	b.registry.rows[llpStatement] = make([]Value, 14)
	b.registry.rows[llpStatement][0] = text("r-1")
	data := func(target string) map[string]any {
		r := b.Serve(request("GET", target, "Authorization", "Bearer "+ident.SandboxKey))
		require.Equal(t, 200, r.Status, "%s", r.Body)
		var answer struct{ Data map[string]any }
		require.NoError(t, json.Unmarshal(r.Body, &answer))
		return answer.Data
	}
	for _, m := range madeUps {
		target, number := "/v1/companies/", "cin"
		if m.isLLP() {
			target, number = "/v1/llps/", "llpin"
		}
		found := data(target + m.value)
		require.Equal(t, m.value, found[number])
		if m.incorporated == "" {
			require.Nil(t, found["incorporation_date"], m.value)
		} else {
			require.Equal(t, m.incorporated, found["incorporation_date"], m.value)
		}
		if m.name == "every field" {
			contact, _ := found["contact"].(map[string]any)
			for _, fields := range []map[string]any{found, contact} {
				for field, value := range fields {
					require.NotNil(t, value, field)
				}
			}
		}
	}
	require.Equal(t, SandboxDirector, data("/v1/directors/" + SandboxDirector)["din"])
	require.Equal(t, "ASHA", data("/v1/directors/1")["name"], "of the registry")
	r := b.Serve(request("GET", "/v1/companies/"+SandboxNoCompany, "Authorization", "Bearer "+ident.SandboxKey))
	require.Equal(t, CompanyNotFound, problemOf(t, r))
	b.registry.err = errors.New("away")
	r = b.Serve(request("GET", "/v1/companies/"+SandboxCompany, "Authorization", "Bearer "+ident.SandboxKey))
	require.Equal(t, RegistryUnavailable, problemOf(t, r), "a made-up record does not hide it")
}

// TestTextThatIsNoUTF8IsWrittenAsSuch, since JSON has no other.
func TestTextThatIsNoUTF8IsWrittenAsSuch(t *testing.T) {
	var w writer
	w.text("caf\xe9 \"noir\"")
	require.Equal(t, "\"caf\uFFFD \\\"noir\\\"\"", string(w.buf))
	w = writer{}
	w.text("a\uFFFDb\n") // that was in the text
	require.Equal(t, "\"a\uFFFDb\\n\"", string(w.buf))
}

// twice is a store that returns every row twice.
type twice struct{ *canned }

func (s twice) Query(statement string, args []Value) (*Result, error) {
	r, err := s.canned.Query(statement, args)
	r.Values = append(r.Values[:len(r.Values):len(r.Values)], r.Values...)
	return r, err
}

// TestARecordThatComesTwiceIsNotSold: the registry is damaged.
func TestARecordThatComesTwiceIsNotSold(t *testing.T) {
	b := newBench()
	b.Registry = twice{b.registry}
	require.Equal(t, RegistryUnavailable, problemOf(t, b.get("/v1/directors/1")))
	require.Equal(t, charge.Failed, b.meter.asked[0].Outcome)
}

// TestARetryIsKnownByItsWholeTarget, and the sandbox's requests by their address alone.
func TestARetryIsKnownByItsWholeTarget(t *testing.T) {
	b := newBench()
	for _, name := range []string{"a", "b", "a"} {
		b.get("/v1/search/companies?name="+name, HeaderIdempotency, "k")
	}
	require.Equal(t, b.meter.asked[0].TargetHash, b.meter.asked[2].TargetHash)
	require.NotEqual(t, b.meter.asked[0].TargetHash, b.meter.asked[1].TargetHash)
	b.Serve(request("GET", "/v1/directors/1", "Authorization", "Bearer "+ident.SandboxKey, HeaderIdempotency, "k"))
	require.Empty(t, b.meter.asked[3].IdempotencyHash)
	require.Equal(t, "192.0.2.1", b.meter.asked[3].Client)
}

// TestARefusalOfTheMeterSaysWhenToComeBack, and a free answer that it was given before.
func TestARefusalOfTheMeterSaysWhenToComeBack(t *testing.T) {
	b := newBench()
	b.meter.verdict.Code, b.meter.verdict.RetryAfter = charge.MonthlyVolumeExceeded, 77
	r := b.get("/v1/directors/1")
	require.Equal(t, charge.MonthlyVolumeExceeded, problemOf(t, r))
	require.Equal(t, "77", header(t, r, charge.HeaderRetryAfter))
	b.meter.verdict.Code, b.meter.verdict.Replayed = "", true
	b.registry.rows[directorStatement][1] = Value{}
	r = b.get("/v1/directors/1")
	require.Equal(t, DirectorNotFound, problemOf(t, r))
	require.Equal(t, "true", header(t, r, charge.HeaderReplayed))
}

// TestAPathThatIsNoneHasNoMethods.
func TestAPathThatIsNoneHasNoMethods(t *testing.T) {
	b := newBench()
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		require.Equal(t, RouteNotFound, problemOf(t, b.Serve(request(method, "/v1/none"))), method)
	}
}

// TestASearchOfTheSandboxFindsAMadeUpNumber, and a refusal says what is wrong with a parameter.
func TestASearchOfTheSandboxFindsAMadeUpNumber(t *testing.T) {
	b := newBench()
	b.Registry = newTables(t, schema.Registry, `INSERT INTO release (id, released_at, companies, llps, directors, appointments, partners) VALUES ('r', 0, 0, 0, 0, 0, 0)`)
	search := func(query string) *Response {
		return b.Serve(request("GET", "/v1/search/companies?name="+query, "Authorization", "Bearer "+ident.SandboxKey))
	}
	for _, m := range madeUps {
		r := search(m.value)
		require.Equal(t, 200, r.Status, "%s", r.Body)
		require.Contains(t, string(r.Body), `"`+m.value+`"`)
	}
	require.Contains(t, string(search("tea&limit=11").Body), `"detail":"The parameter limit is an integer from 1 to 10, given at most once."`)
}

// TestAPlusIsASpaceInAQueryAlone: in a path, a number with a plus is invalid.
func TestAPlusIsASpaceInAQueryAlone(t *testing.T) {
	b := newBench()
	require.Equal(t, CompanyNotFound, problemOf(t, b.get("/v1/companies/%20U72900KA2015PTC082345%20")))
	require.Equal(t, InvalidCIN, problemOf(t, b.get("/v1/companies/+U72900KA2015PTC082345")))
	require.Equal(t, InvalidDIN, problemOf(t, b.get("/v1/directors/12+")))
	require.Equal(t, 200, b.get("/v1/search/llps?llpin=+AAA-1234+").Status)
}

// TestANameIsSuggestedOnce, though the query is both like it and its acronym.
func TestANameIsSuggestedOnce(t *testing.T) {
	acronym, ok := names.AcronymOf("gips")
	require.True(t, ok)
	const label = "GUJARAT INDUSTRIAL PAPER SUPPLY LIMITED"
	const lines = "gujarat industrial paper supply limited\x1e" + label
	require.Equal(t, []string{label}, spelledOut(acronym, lines, nil))
	require.Equal(t, []string{label, "GIPS LIMITED"}, spelledOut(acronym, lines, []string{label, "GIPS LIMITED"}))
	require.Equal(t, []string{"GIPS LIMITED", label}, spelledOut(acronym, lines, []string{"GIPS LIMITED"}))
}
