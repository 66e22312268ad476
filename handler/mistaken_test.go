package handler

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"regedge/handler/ident"
)

// TestAMistypedNumberIsToldWhatIsWrongWithIt, in words of ours: nothing of the request is repeated.
func TestAMistypedNumberIsToldWhatIsWrongWithIt(t *testing.T) {
	b, form := newBench(), problems[0].Detail
	said := func(target string) string {
		r := b.Serve(request("GET", target, "Authorization", "Bearer "+ident.SandboxKey))
		require.Equal(t, 400, r.Status, target)
		return gjson.GetBytes(r.Body, "detail").String()
	}
	for target, want := range map[string]string{
		"/v1/companies/99999901":                   "Perhaps /v1/directors/{din} is meant.",
		"/v1/companies/zzz0001":                    "Perhaps /v1/llps/{llpin} is meant.",
		"/v1/directors/" + SandboxCompany:          "Perhaps /v1/companies/{cin} is meant.",
		"/v1/directors/U72900-ZZ-2015-PTC-000001":  "Perhaps /v1/companies/{cin} is meant.",
		"/v1/directors/ZZZ-0001":                   "Perhaps /v1/llps/{llpin} is meant.",
		"/v1/llps/" + SandboxCompany:               "Perhaps /v1/companies/{cin} is meant.",
		"/v1/llps/99999901":                        "Perhaps /v1/directors/{din} is meant.",
		"/v1/llps/ZZZ-00001":                       "as in ZZZ-0001, given once.",
		"/v1/directors/999999010":                  "as in 99999901.",
		"/v1/companies/aaaca1234b":                 " finds a company or an LLP by its name.",
		"/v1/directors/29AAACA1234B1Z6":            " finds a company or an LLP by its name.",
		"/v1/llps/AAACA-1234-B":                    " finds a company or an LLP by its name.",
		"/v1/companies/AAACA12345":                 form + " This one has 10.",
		"/v1/companies/29AAACA1234B1Z":             form + " This one has 14.",
		"/v1/companies/A9AAACA1234B1Z6":            form + " This one has 15.",
		"/v1/companies/u72900-zz-2015-ptc-000001":  form + " This one has 25. Its letters and digits alone are a CIN.",
		"/v1/companies/CIN%20" + SandboxCompany:    form + " This one has 25.",
		"/v1/companies/%2":                         "as in U72900ZZ2015PTC000001.",
		"/v1/companies/%20U72900ZZ2015PTC00001":    form + " This one has 20.",
		"/v1/companies/U72900ZZ2015PTC00000%C3%A9": form + " Character 21 of this one is not a digit.",
	} {
		require.True(t, strings.HasSuffix(said(target), want), "%s: %s", target, said(target))
	}
	for i, c := range SandboxCompany {
		wrong, kind := "x", "digit"
		if c > '9' {
			wrong, kind = "0", "letter"
		}
		require.Equal(t, fmt.Sprintf("%s Character %d of this one is not a %s.", form, i+1, kind),
			said("/v1/companies/"+SandboxCompany[:i]+wrong+SandboxCompany[i+1:]))
	}
}
