package names

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIndicScriptsInLatinLetters(t *testing.T) {
	for in, want := range map[string]string{
		"लक्ष्मी स्ट्रक्चरल्स": "lakshmi strakcharals", "श्री साई प्रकाश": "shri sai prakash", "पंप संगम": "pamp sangam",
		"रेज़िन": "rezin", "૧૨ જોશી": "12 joshi", "লক্ষ্মী": "lakshmi", "ਭਾਰਤ": "bharat", "tata स्टील": "tata stil",
		"ಕೃಷ್ಣ": "krishn", "சக்தி": "sakti", "பாண்டிச்சேரி": "pantisseri", "శ్రీ": "shri", "ଭାରତ": "bharat", "ഭാരത്": "bharat",
		"क ख ग घ ङ च छ ज झ ञ ट ठ ड ढ ण": "k kh g gh n ch chh j jh n t th d dh n", "त थ द ध न प फ ब भ म": "t th d dh n p ph b bh m",
		"य र ल व श ष स ह": "y r l v sh sh s h", "अ आ इ ई उ ऊ ऋ ए ऐ ओ औ": "a a i i u u ri e ai o au", "ग\u093cज\u093cल": "gazal",
		"\u0958 \u0959 \u095a \u095b \u095c \u095d \u095e \u095f": "k kh g z r rh f y", "ൺ ൻ ർ ൽ ൾ ൿ": "n n r l l k",
	} {
		got, ok := inLatin(Query(in))
		require.True(t, ok, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"tata steel", "", "東京", "عربي"} {
		_, ok := inLatin(in)
		require.False(t, ok, in)
		require.Empty(t, heard(in))
	}
}

func TestANameIsHeardInAnotherScript(t *testing.T) {
	for query, name := range map[string]string{
		"बालाजी कैंडल्स": "balaji candles private limited", "हिमाचल टेक्सटाइल पार्क": "himachal textile park limited",
		"शिव शक्ति अलॉयज प्राइवेट लिमिटेड": "shiv shakti alloys private limited", "जोशी रियल एस्टेट्स": "joshi real estates private limited",
		"शर्मा पब्लिकेशन": "sharma publication private limited",
	} {
		s := NewSuggestions(Query(query))
		s.Add("shree balaji traders private limited", "OTHER")
		s.Add("sharma communication private limited", "ANOTHER")
		s.Add(name, name)
		require.NotEmpty(t, s.Labels(), query)
		require.Equal(t, name, s.Labels()[0], query)
	}
}

// TestATamilLetterHasSeveralSounds: names are asked for and compared with each.
func TestATamilLetterHasSeveralSounds(t *testing.T) {
	require.Equal(t, []string{"krs", "grs", "krk", "krj", "grk", "grj"}, soundsOfTamil("karasu"))
	require.LessOrEqual(t, len(soundsOfTamil("pakatapasakatapa")), maxTamil)
	terms, _ := LikeTerms(Query("கங்கா பாரத்"))
	for _, sound := range []string{"kng", "gng", "prt", "brd"} {
		require.Contains(t, terms, `"~`+sound+`\"`)
	}
	for query, name := range map[string]string{
		"கங்கா ஸ்டீல்ஸ்": "ganga steels private limited", "பாரத் டெக்ஸ்டைல்ஸ்": "bharat textiles limited", "துர்கா ஃபைனான்ஸ்": "durga finance limited",
		"ஜோதி பில்டர்ஸ்": "jothi builders private limited",
	} {
		s := NewSuggestions(Query(query))
		s.Add("another steels textiles finance builders limited", "OTHER")
		s.Add(name, name)
		require.Equal(t, []string{name}, s.Labels(), query)
	}
	require.Equal(t, costAbsent, heardCost("parat", "bhasam", true))
}

func TestLegalEndingsAreHeard(t *testing.T) {
	for _, word := range []string{"praivet", "limited", "pvt", "ltd"} {
		require.True(t, isHeardEnding(word), word)
	}
	require.False(t, isHeardEnding("tata"))
}

// TestWordsWithoutASoundInNamesAreNotHeard: short forms of the legal ending, "and" in several spellings, and a doctor's title.
func TestWordsWithoutASoundInNamesAreNotHeard(t *testing.T) {
	for query, want := range map[string]string{
		"दिशा ट्रेडर्स प्रा. लि.": "disha tredars", "दिशा ट्रेडर्स प्रा.लि.": "disha tredars", "દિશા ટ્રેડર્સ પ્રા. લિ.": "disha tredars", "দিশা স্টিল প্রাঃ লিঃ": "disha stil",
		"बशीर एंड संस": "bashir sans", "बशीर एण्ड संस लि": "bashir sans", "डॉ. लाल लैब्स": "lal laibs", "प्रा लि": "pra",
	} {
		require.Equal(t, strings.Fields(want), heard(Query(query)), query)
	}
}

// TestShortSoundsAreHeardExactly: in a sound of two letters no letter may be wrong.
func TestShortSoundsAreHeardExactly(t *testing.T) {
	require.Equal(t, costAbsent, heardCost("kama", "kala", false))
	require.Equal(t, costLetter+costSpelling, heardCost("kamal", "kamat", false))
	require.Equal(t, costAbsent, heardCost("kamal", "tarat", false))
	require.Equal(t, costHeard, heardCost("kamala", "kimulu", false), "other vowels")
}

func TestSpellingsOfAFirstSound(t *testing.T) {
	for word, want := range map[string]string{
		"kamal": "kcq", "sita": "sczx", "jai": "jzgs", "zee": "zjs", "ganga": "gj", "vandana": "vwb", "bala": "bv", "fateh": "fp", "prem": "pf",
		"tara": "td", "durga": "dt", "arun": "aeiouy", "mohan": "m", "éa": "é",
	} {
		require.Equal(t, want, firstLetters(word), word)
	}
}

// FuzzHeard reads any text in any script.
func FuzzHeard(f *testing.F) {
	for _, s := range []string{"लक्ष्मी", "़", "ऀ", "्", "a", "श्री१२", "ॿ ഀ ൿ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query := Query(text)
		LikeTerms(query)
		s := NewSuggestions(query)
		s.Add(Name(text), "X")
		s.Add("tata steel", "Y")
	})
}
