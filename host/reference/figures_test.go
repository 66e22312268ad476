package reference_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler"
	"regedge/host/reference"
)

// TestFiguresAndOrdersAreTheContractsEverywhere: what the contract promises stands in the document and in the guides in other
// words, which are compared here. Who changes one changes all.
func TestFiguresAndOrdersAreTheContractsEverywhere(t *testing.T) {
	texts := map[string]string{}
	says := func(file, words string) {
		t.Helper()
		if texts[file] == "" {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[file] = strings.Join(strings.Fields(string(text)), " ")
		}
		require.Contains(t, texts[file], words, file)
	}
	const document = "openapi.yaml"
	guide := func(name string) string { return "guides/" + name + ".html" }
	for promise, copies := range map[string][][2]string{
		"| sandbox requests in a UTC minute | client address | 30 |": {
			{document, "sandbox key: 30 for each client address"}, {guide("sandbox"), "<td>30 for each client address</td>"},
			{guide("credits-and-limits"), `<td>sandbox key</td><td class="number">30</td>`}, {guide("testing"), "the sandbox's 30 calls a minute"},
		},
		"| not found in a UTC day | key | 100 |": {
			{document, "| 100 for each key and UTC day; sandbox key: for each client address |"}, {guide("sandbox"), "<td>100 for each client address</td><td>100 for each key</td>"},
			{guide("credits-and-limits"), "in a UTC day that find nothing</td><td>100</td><td>key</td>"}, {guide("search"), "daily cap of 100 not-found calls"},
			{guide("moving"), "100 a day for each key"}, {document, "counts towards the 100 of the day that find nothing"},
		},
		"| active keys | account | 5 |": {
			{document, "| Active keys | 5 for each account |"}, {document, "an account has at most 5 active ones"}, {guide("credits-and-limits"), "<td>Active keys</td><td>5</td><td>account</td>"},
			{guide("authentication"), "at most 5 active keys"}, {"pages/start.html", "<dt>Keys</dt><dd>up to 5</dd>"},
		},
		"| networks from which it may be used | key | 16 |": {{guide("authentication"), "up to 16 ("}},
		"| directors, linked companies, partners returned | answer | 50, 10, 50 |": {
			{document, "| Directors of a company | the first 50 | | Linked companies of a director | the first 10, with the full count | | Partners of an LLP | the first 50, with the full count |"},
			{guide("credits-and-limits"), "<td>the first 50 are returned</td>"}, {guide("credits-and-limits"), "<td>the first 10, and <code>linked_companies_total</code></td>"},
			{guide("credits-and-limits"), "<td>the first 50, and <code>partners_total</code></td>"},
		},
		"remembers the newest 65,536 charges with a key, for 10 minutes": {
			{document, "is not charged again for 10 minutes"}, {guide("errors"), "remembers the newest 65,536 keys, for 10 minutes at most"}, {guide("errors"), "Within 10 minutes the node that charged"},
		},
		"`Idempotency-Key`: 1 to 64 printable ASCII":                                   {{"problem.go", "Idempotency-Key is empty, longer than 64 characters, has a space or a character outside of ASCII"}},
		"`reg_live_`, 32 random base62 characters, and a base62 CRC-32 checksum of 6.": {{guide("authentication"), "has 47 characters. The last six are a checksum"}},
		"its first four secret characters":                                             {{guide("authentication"), "its first four characters"}},
		"an IPv6 network of 64 bits":                                                   {{guide("sandbox"), "Addresses of IPv6 count by their first 64 bits"}},
		"| `starter` | yes | 60 | 10,000 | no | no |":                                  {{guide("credits-and-limits"), `<code>starter</code></td><td class="number">60</td><td class="number">10,000</td><td>none</td>`}},
		"| `growth` | yes | 300 | 100,000 | yes | no |": {
			{guide("credits-and-limits"), `<code>growth</code></td><td class="number">300</td><td class="number">100,000</td><td>e-mail</td>`},
			{document, "by plan: 60, 300 or 1,200"}, {document, "by plan: 10,000, 100,000 or 1,000,000"},
		},
		"| `scale` | yes | 1,200 | 1,000,000 | yes | yes |": {
			{guide("credits-and-limits"), `<code>scale</code></td><td class="number">1,200</td><td class="number">1,000,000</td><td>e-mail and phone</td>`},
			{document, "`growth` includes e-mail, `scale` e-mail and phone"},
		},
		"in all at most 20 bytes, white space included": {{document, "At most 20 characters, blanks around it counted"}, {guide("credits-and-limits"), "<td>Length of an LLPIN parameter</td><td>20 characters</td>"}},
		"White space around a value does not count.":    {{document, "Case and blanks around it do not matter."}},
		"`1` to `10`, written without sign or leading zero, at most once; 5 when absent": {
			{document, "| Matches of a name search | 1 to 10, 5 unless asked otherwise |"}, {guide("credits-and-limits"), "<td>1 to 10, default 5</td>"}, {guide("search"), "<code>limit</code> is 1 to 10 and 5 by default"},
		},
		"A query of one or two characters is accepted and finds only names that start with it.": {
			{document, "With 1 or 2 characters only names that start with them are found."}, {guide("search"), "with 1 or 2 only names that begin with them are found"},
		},
		"| 1 to 200 characters of UTF-8, exactly once |":                           {{document, "Give 3 to 100 characters; up to 200 are accepted."}, {"pages/start.html", `maxlength="200"`}},
		"ordered by appointment date, oldest first, those without a date last":     {{document, "by appointment date, the earliest first and those without a date last"}, {document, "the longest-serving first"}},
		"newest first, those without a date last":                                  {{document, "The first 10 of them, the newest appointment first and those without a date last"}},
		"The newest comes first, those without a joining date last":                {{document, "the latest to join first and those without a date last"}},
		"active records first, then shorter registered names, then alphabetically": {{document, "active ones come first, then shorter registered names"}, {guide("search"), "active ones come first, then shorter registered names, then by alphabet"}},
		"`meta.sandbox` true and `meta.credits_remaining` null":                    {{guide("production"), "<code>meta.sandbox</code> is <code>false</code>"}, {guide("sandbox"), "<td><code>true</code></td><td><code>false</code></td>"}},
		"else the source's (`ACTIVE`, `INACTIVE`, `RETIRED`)":                      {{document, "enum: [ACTIVE, INACTIVE, RETIRED]"}},
		"An LLP has four statuses only":                                            {{document, "enum: [ACTIVE, INACTIVE, DISSOLVED, SUSPENDED]"}},
		"| `STRUCK_OFF` | Strike Off, Struck Off,":                                 {{document, "enum: [ACTIVE, INACTIVE, DISSOLVED, STRUCK_OFF, SUSPENDED, UNDER_LIQUIDATION]"}, {guide("moving"), "One of six values"}},
	} {
		says("../../docs/contract.md", promise)
		for _, c := range copies {
			says(c[0], c[1])
		}
	}
}

// TestTheGuideSaysToRetryWhatThePagesOfCodesDo, by status.
func TestTheGuideSaysToRetryWhatThePagesOfCodesDo(t *testing.T) {
	site := newSite(t, reference.Config{})
	guide := bodyOf(t, get(t, site, "/guides/errors"))
	advised := map[string]string{}
	for _, row := range regexp.MustCompile(`<tr><td>([0-9, ]+)</td><td>(.*?)</td></tr>`).FindAllStringSubmatch(guide, -1) {
		for status := range strings.SplitSeq(row[1], ", ") {
			advised[status] = row[2]
		}
	}
	for _, problem := range handler.Problems() {
		advice := advised[strconv.Itoa(problem.Status)]
		require.NotEmpty(t, advice, problem.Code)
		page := bodyOf(t, get(t, site, "/problems/"+problem.Code))
		if strings.HasPrefix(advice, "No.") {
			require.NotRegexp(t, `<dd>Yes, (at once|after the seconds)`, page, problem.Code)
		} else {
			require.NotContains(t, page, "<dd>No. The same call", problem.Code)
		}
	}
}
