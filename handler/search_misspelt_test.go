package handler

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/handler/names"
	"regedge/internal/testkit/misspelt"
	"regedge/internal/testkit/searchtest"
)

// The share of misspelt queries without a match whose name must be among the suggestions.
const (
	wantTypos     = 0.90
	wantSpellings = 0.85
	wantMore      = 0.90
)

// meant is a misspelt query and the company that was meant.
type meant struct {
	judged
	kind string // typo or spelling, or more words than the name has: place or article
	set  string // where it comes from
}

func TestSearchSuggestsTheNameThatWasMeant(t *testing.T) {
	set := readMisspelt(t)
	records := append(searchtest.Real(t), searchtest.Others(t)...)
	if len(records) == 0 {
		t.Log("without ../shared/data: searching the names of testdata")
		records = searchtest.Sample(t)
		var wanted []judged
		for _, m := range set {
			wanted = append(wanted, m.judged)
		}
		records = withWanted(records, wanted)
	}
	s := newSearcher(t, records)
	t.Run("judged queries", func(t *testing.T) { s.judgeSuggestions(t, set) })
	t.Run("derived queries", func(t *testing.T) { s.judgeSuggestions(t, deriveMisspelt(records, 500)) })
}

// readMisspelt reads testdata/search/misspelt.tsv.
func readMisspelt(t *testing.T) (set []meant) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(searchtest.Root(t), "testdata", "search", "misspelt.tsv"))
	require.NoError(t, err)
	after := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 6, line)
		set = append(set, meant{judged{f[3], f[4], f[5]}, f[1], "written " + f[0] + ", by " + f[2]})
		if f[0] == "after" {
			after++
		}
	}
	require.Equal(t, "query", set[0].query)
	require.GreaterOrEqual(t, len(set), 400)
	require.GreaterOrEqual(t, 2*after, len(set)-1, "half of it was written after the code")
	return set[1:]
}

// deriveMisspelt makes as many typos and as many other spellings of random names.
func deriveMisspelt(records []searchtest.Record, count int) (set []meant) {
	random := rand.New(rand.NewPCG(13, 14))
	for len(set) < 2*count {
		r := records[random.IntN(len(records))]
		kind, query := "typo", ""
		if len(set)%2 == 0 {
			query = misspelt.Typo(random, r.Name)
		} else {
			kind, query = "spelling", misspelt.Respelling(random, r.Name)
		}
		if query != "" {
			set = append(set, meant{judged{query, r.Value, r.Name}, kind, "derived"})
		}
	}
	return set
}

// share counts queries of one kind.
type share struct{ asked, empty, first, three int }

func (s *share) String() string {
	of := func(n int) float64 { return float64(n) / float64(max(1, s.empty)) }
	return fmt.Sprintf("%d queries, %d without a match: the name first %.3f, among three %.3f", s.asked, s.empty, of(s.first), of(s.three))
}

// judgeSuggestions checks how often an empty search suggests the wanted name.
func (s *searcher) judgeSuggestions(t *testing.T, set []meant) {
	t.Helper()
	sum := map[string]*share{}
	count := func(key string, empty bool, rank int) {
		if sum[key] == nil {
			sum[key] = &share{}
		}
		n := sum[key]
		n.asked++
		if empty {
			n.empty++
		}
		if rank == 1 {
			n.first++
		}
		if rank <= names.MaxSuggestions {
			n.three++
		}
	}
	for _, m := range set {
		found, suggestions := s.search(t, m.query, defaultLimit)
		empty, rank := found == "[]", names.MaxSuggestions+1
		if empty {
			rank = rankOf(m.name, suggestions)
			if rank > names.MaxSuggestions {
				t.Logf("%s, %s: %q wants %q, got %s", m.set, m.kind, m.query, m.name, suggestions)
			}
		}
		count(m.kind, empty, rank)
		count(m.set+", "+m.kind, empty, rank)
	}
	for key, n := range sum {
		t.Logf("%s: %v", key, n)
	}
	for kind, want := range map[string]float64{"typo": wantTypos, "spelling": wantSpellings, "place": wantMore, "article": wantMore} {
		n := sum[kind]
		if n == nil {
			continue // of the derived queries
		}
		require.GreaterOrEqual(t, float64(n.three)/float64(n.empty), want, kind)
		require.Greater(t, 10*n.empty, 8*n.asked, "most misspelt queries match no name")
	}
}

// rankOf returns the position, from 1, of a name among suggestions, as the value of the header.
func rankOf(name, suggestions string) int {
	list := strings.Split(strings.Trim(suggestions, `"`), `", "`)
	for i, label := range list {
		if label != "" && names.Name(label) == names.Name(name) {
			return i + 1
		}
	}
	return names.MaxSuggestions + 1
}

func TestOfEquallyLikeNamesTheFirstInSearchOrderIsSuggested(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U72900ZZ2015PTC000001", Name: "BRIGHTWAVA LIMITED", Status: "STRUCK OFF"},
		{Value: "U72900ZZ2015PTC000002", Name: "BRIGHTWAVB LIMITED", Status: "ACTIVE"},
	})
	_, suggested := s.search(t, "brightwavx limited", 5)
	require.Equal(t, `"BRIGHTWAVB LIMITED", "BRIGHTWAVA LIMITED"`, suggested)
}

// TestOfEquallyLikeNamesTheFirstIsSuggestedWhicheverWordIsMisspelt: the one with the other word is searched for later.
func TestOfEquallyLikeNamesTheFirstIsSuggestedWhicheverWordIsMisspelt(t *testing.T) {
	s := newSearcher(t, []searchtest.Record{
		{Value: "U72900ZZ2015PTC000001", Name: "MARBLE BXTTON GARDEN LIMITED", Status: "ACTIVE"},
		{Value: "U72900ZZ2015PTC000002", Name: "MXRBLE BUTTON GARDEN LIMITED", Status: "ACTIVE"},
	})
	_, suggested := s.search(t, "marble button garden", 5)
	require.Equal(t, `"MARBLE BXTTON GARDEN LIMITED", "MXRBLE BUTTON GARDEN LIMITED"`, suggested)
}

// TestANameWithoutItsSpacesMayBeMisspelt, wherever the mistake is. Names that share a part of it are not suggested.
func TestANameWithoutItsSpacesMayBeMisspelt(t *testing.T) {
	queries := map[string]string{
		"rightholidayhmoes": "RIGHT HOLIDAY HOMES", "luuxryhotelsandmotels": "LUXURY HOTELS AND MOTELS", "bergensolarpoewrandenergy": "BERGEN SOLAR POWER AND ENERGY",
		"hattangarndholidayhomes": "HATTAN AND GRAND HOLIDAY HOMES", "dkvexpotrs": "D K V EXPORTS", "collectiveenrtepreneursagrofoundation": "COLLECTIVE ENTREPRENEURS AGRO FOUNDATION",
		"puretechinida": "PURE TECH INDIA", "hwaysidecabs": "WAYSIDE CABS", "kioremgandsonspovver": "KOIRENG AND SONS POWER",
		"kioremgandsonspoxxer": "",
	}
	var records []searchtest.Record
	for _, name := range queries {
		records = append(records, searchtest.Record{Value: fmt.Sprintf("U72900GA2015PTC%06d", len(records)), Name: strings.TrimSpace(name + " LIMITED"), Status: "ACTIVE"})
	}
	s := newSearcher(t, records)
	for query, name := range queries {
		found, suggested := s.search(t, query, 5)
		require.Equal(t, "[]", found, query)
		if name != "" {
			name = `"` + name + ` LIMITED"`
		}
		require.Equal(t, name, suggested, query)
	}
}

// TestBothOfTwoWordsMayBeWrong: where the second is misspelt, cut short or abbreviated, names are asked for by what is like the first.
func TestBothOfTwoWordsMayBeWrong(t *testing.T) {
	requireSuggested(t, map[string]string{
		"azarra estaurants": "AZARA RESTAURANTS", "autohoome mktg": "AUTOHOME MARKETING", "apexara ystems": "APEXUARA SYSTEMS",
		"wnidberry mark": "WINDBERRY MARKETS", "rchies htls": "ARCHIES HOTELS", "minaaxi expo": "MINAXI EXPORTS",
		"ufbanresorts": "URBAN RESORTS", "vee tee multiplex": "V T MULTIPLEX", "kb carbons": "KAYBEE CARBONS", "jj conek": "JAY JAY CONEK", "essdee biotech": "S D BIOTECH", "ess ess alloys": "S S ALLOYS",
		"sad bhavna sekva foundation": "SADBHAVNA SEVA FOUNDATION", "spa rkling vadations": "SPARKLING VACATIONS", "kontok": "KHONTHOK", "karbwer": "CARBVER",
		"three sixty hospitality": "360 HOSPITALITY", "doctor puri hospital": "DR PURI SPECIALITY HOSPITAL",
		"growth at emperos": "EMPEROS", "a v are glassworks": "AVR GLASSWORKS",
	})
}

// TestWhatIsCopiedFromAPaperIsSuggested: digits that were letters, the address of a site with its path, a former name, a number as it is said.
func TestWhatIsCopiedFromAPaperIsSuggested(t *testing.T) {
	requireSuggested(t, map[string]string{
		"360 degree": "THREE SIXTY DEGREE RESOURCES", "5pan comnct": "SPAN COMNET", "n0rthern pctal": "NORTHERN PETAL", "gaj construct1": "GAJ CONSTRUCTIONS",
		"mand1 crcstals": "MAND1 CRYSTALS", "gr8 nagpur": "GR8 EVENTS AND TOURS",
		"https://www.peektexfab.in/contact-us": "PEEK TEXFAB", "kundil realty (formerly known as Zeta Holdings Pvt Ltd)": "KUNDIL REALTY",
		"shiva automobiles group of companies": "SHIVA AUTOMOBILES", "sofi dairy products, GSTIN: 30AABCU9603R1ZX": "SOFI DAIRY PRODUCTS",
	})
}

// TestAMailboxSuggestsTheNameInIt, with what follows the name there, also where it is one of a mail provider.
func TestAMailboxSuggestsTheNameInIt(t *testing.T) {
	requireSuggested(t, map[string]string{
		"jmdglass@rediffmail.com": "JMD GLASS TECH", "cs.gabanigems123@gmail.com": "GABANI GEMS", "relightcyberneticspvtltd@yahoo.co.in": "RELIGHT CYBERNETICS",
		"info@poshida-global.org": "POSHIDA GLOBAL", "roshan.studios@hotmail.com": "ROSHAN STUDIOS",
		"kundilrealtylimited@gmail.com": "KUNDIL REALTY", "peektexfab.ac@gmail.com": "PEEK TEXFAB",
	})
}

// TestALineOfAListSuggestsTheNameInIt: its number before the name and its status behind it, or a phone number.
func TestALineOfAListSuggestsTheNameInIt(t *testing.T) {
	requireSuggested(t, map[string]string{
		"12) preethi cotton mills ACTIVE": "PREETHI COTTON MILLS", "Trishul Energy Systems, +91 98220 12345": "TRISHUL ENERGY SYSTEMS",
		"excel hydropower, tel. 0832 2412345": "EXCEL HYDROPOWER", "is karunya ventures registered": "KARUNYA VENTURES",
	})
}

// TestANameAmongOtherWordsIsSuggested, wherever it stands among them, spaces ignored: the party of a lawsuit, a line of a form or a
// payment, a file, an account, the domain of a site.
func TestANameAmongOtherWordsIsSuggested(t *testing.T) {
	requireSuggested(t, map[string]string{
		"State Bank of India vs Lander Vista Enterprises Ltd": "LANDER VISTA ENTERPRISES", "Perfect Cookwares vs Union of India": "PERFECT COOKWARES",
		"Legal Name of Business Mehya Digi Tech": "MEHYA DIGI TECH", "Trade Name, if any HENILS TECHNOLOGIES": "HENILS TECHNOLOGIES",
		"NEFT CR-HDFC0000001-MARUTI TRADECON PVT LTD": "MARUTI TRADECON", "01-04-2024 STARLIGHT GUEST HOUSE": "STARLIGHT GUEST HOUSE",
		"copy of soumya tradelink.docx": "SOUMYA TRADELINK", "facebook.com/coutodatasystems": "COUTO DATA SYSTEMS", "petrasholidayhomes@ybl": "PETRAS HOLIDAY HOMES",
		"www.sukhinepower.online": "SUKHINE POWER", "eastern technology ka owner kaun hai": "EASTERN TECHNOLOGY",
		"01-04-2024 HIMALAYAN CONSULTANCY AND MANAGEMENT SERVICES": "HIMALAYAN CONSULTANCY AND MANAGEMENT SERVICES",
		"01-04-2024 FOOD PRODUCTS":                                 "FOOD PRODUCTS", "copy of and infrastructure.pdf": "AND INFRASTRUCTURE",
	})
}

// TestAGenericNameAmongTheWordsHidesNoOther, of which two words are wrong.
func TestAGenericNameAmongTheWordsHidesNoOther(t *testing.T) {
	queries := map[string]string{
		"dsno cower and infrastructure limited":                   "DYNO POWER & INFRASTRUCTURE",
		"magashaye gidhu ram food products private limited":       "MAHASHAYE BIDHU RAM FOOD PRODUCTS",
		"State Bank of India vs Lander Vista and Infrastructure.": "AND INFRASTRUCTURE",
		"to the attention of food products":                       "FOOD PRODUCTS",
	}
	s := newSearcher(t, named(queries))
	for query, name := range queries {
		_, suggested := s.search(t, query, 5)
		require.Equal(t, 1, rankOf(name+" LIMITED", suggested), "%s: %s", query, suggested)
	}
}

// TestTwoLettersMayBeOneThatWasMisread, in several words, beside words that have these two letters.
func TestTwoLettersMayBeOneThatWasMisread(t *testing.T) {
	requireSuggested(t, map[string]string{
		"sarnson timber inclustries": "SAMSON TIMBER INDUSTRIES", "keclar cerea|s": "KEDAR CEREALS", "vvanrnx services": "WANMX SERVICES", "rnoclern furniture": "MODERN FURNITURE",
		"c|attar express": "DATTAR EXPRESS", "|uclo foods india": "LUDO FOODS INDIA",
	})
}

// TestABarIsASeparatorBeforeItIsALetter: what is copied from a table has bars beside its cells.
func TestABarIsASeparatorBeforeItIsALetter(t *testing.T) {
	s := newSearcher(t, named(map[string]string{"": "ACME FOODS", " ": "MITSE TRAVELS AND HOSPITALITY", "  ": "MITSE RETAIL"}))
	for _, query := range []string{"acme foods limited|", "|acme foods|", "acme|foods", "mitse trave|s and hospitality"} {
		require.NotEqual(t, "[]", s.find(t, query, 5), query)
	}
	_, suggested := s.search(t, "acme foods|goa", 5)
	require.Equal(t, `"ACME FOODS LIMITED"`, suggested)
}

// TestLettersMayBeWrittenAsTheWordsThatTheySoundLike, as a telephone's voice input does.
func TestLettersMayBeWrittenAsTheWordsThatTheySoundLike(t *testing.T) {
	requireSuggested(t, map[string]string{"bee see eye alloys": "B C I ALLOYS", "vee are ess consultants": "V R S CONSULTANTS", "tea you marketing": "T U MARKETING",
		"ess em eye institute": "S M EYE INSTITUTE", "vee kay tea compny": "V K TEA COMPANY"})
}

// TestASpaceMayStandAtAWrongPlaceBesideAMistake in two or three words.
func TestASpaceMayStandAtAWrongPlaceBesideAMistake(t *testing.T) {
	requireSuggested(t, map[string]string{"sharmap aridhak": "SHARMA PARIDHAN", "kundanb uildcan": "KUNDAN BUILDCON", "moscostp harmaceuticaos": "MOSCOST PHARMACEUTICALS", "great bea rch artring": "GREAT BEAR CHARTERING",
		"was udeva cargo care": "VASUDEVA CARGO CARE", "raj konti nental hotels": "RAJ CONTINENTAL HOTELS", "kazigundagro farmers": "QAZI GUNDAGRO FARMERS"})
}

// TestAPlaceOfTwoWordsMayFollowANameWithAMistake: a town and its state, or a state or the capital alone, also where names begin with
// that.
func TestAPlaceOfTwoWordsMayFollowANameWithAMistake(t *testing.T) {
	requireSuggested(t, map[string]string{
		"ambika arihant fodos imphal manipur": "AMBIKA ARIHANT FOODS", "awrowin industries, Lucknow, Uttar Pradesh": "AEROWIN INDUSTRIES",
		"mayur infra construtcion navi mumbai": "MAYUR INFRA CONSTRUCTION", "trikuta cinsultants new delhi": "TRIKUTA CONSULTANTS",
		"hydrnauts new delhi": "HYDRONAUTS", "Clasic Himachal, Himachal Pradesh": "CLASSIC HIMACHAL",
	})
	s := newSearcher(t, named(map[string]string{"": "NEW DELHI FINANCE", " ": "NEW DELHI TRANSIT", "  ": "NEW DELHI TOURS", "   ": "GENESIS CULTIVATIONS"}))
	_, suggested := s.search(t, "genesis cultivatiojs new delhi", 5)
	require.Equal(t, 1, rankOf("GENESIS CULTIVATIONS LIMITED", suggested), suggested)
	for _, other := range []string{"genesys manipur imphal cultivatiojs", "genesys cultivatiojs imphal manipur", "genesys imphal manipur"} {
		_, suggested = s.search(t, other, 5)
		require.Empty(t, suggested, other)
	}
}

// TestAPlaceMayStandBesideANameWithAMistake: behind a name of one word, or before a name of several, unless another name has the others.
func TestAPlaceMayStandBesideANameWithAMistake(t *testing.T) {
	requireSuggested(t, map[string]string{
		"medexq jammu": "MEDEXIQ", "crowdmjo agartala tripura": "CROWDMOJO", "jammu trikuta consultnats": "TRIKUTA CONSULTANTS",
	})
	s := newSearcher(t, named(map[string]string{"": "INDIA NET INCUBATOR", " ": "EXPERIENCE INDIA", "  ": "HUBEX", "   ": "NORTHERN TRIKUTA CONSULTANTS"}))
	for query, want := range map[string]string{
		"experienec india inc": `"EXPERIENCE INDIA LIMITED", "INDIA NET INCUBATOR LIMITED"`, "hubx jammu": "", "jammu trikuta consultnats": "", "medexq hubex foods park jammu": "",
	} {
		_, suggested := s.search(t, query, 5)
		require.Equal(t, want, suggested, query)
	}
}

// TestANameMayHaveWhatIsMostlyNotOfANameOrMisread: names with digits in words, with ordinal numbers, and of a group of companies are
// suggested for queries with mistakes in them, too.
func TestANameMayHaveWhatIsMostlyNotOfANameOrMisread(t *testing.T) {
	queries := map[string]string{
		"asvenue 1st holidays": "ADVENTURE 1ST HOLIDAYS", "mand1 rcystaal": "MAND1 CRYSTALS", "graacias5 ressources": "GRACIAS5 RESOURCES",
		"gdnnoa marketing c0mpany": "GONDOLA MARKETING C0MPANY", "kinngs group of companies": "KINGS GROUP OF COMPANIES",
		"1st choyce realty": "FIRST CHOICE REALTY", "pearl kha1i 360 tours": "PEARL KHA1I THREE SIXTY TOURS",
	}
	s := newSearcher(t, named(queries))
	for query, name := range queries {
		found, suggested := s.search(t, query, 5)
		require.Equal(t, "[]", found, query)
		require.Equal(t, 1, rankOf(name+" LIMITED", suggested), "%s: %s", query, suggested)
	}
}

// requireSuggested requires that each query matches no name, and suggests the one that it means alone.
func requireSuggested(t *testing.T, queries map[string]string) {
	t.Helper()
	s := newSearcher(t, named(queries))
	for query, name := range queries {
		found, suggested := s.search(t, query, 5)
		require.Equal(t, "[]", found, query)
		require.Equal(t, `"`+name+` LIMITED"`, suggested, query)
	}
}

// named returns companies with the names that queries mean.
func named(queries map[string]string) (records []searchtest.Record) {
	for _, name := range slices.Sorted(maps.Values(queries)) {
		records = append(records, searchtest.Record{Value: fmt.Sprintf("U72900GA2015PTC%06d", len(records)), Name: name + " LIMITED", Status: "ACTIVE"})
	}
	return records
}
