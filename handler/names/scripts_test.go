package names

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIndicScriptsInLatinLetters(t *testing.T) {
	for in, want := range map[string]string{
		"लक्ष्मी स्ट्रक्चरल्स": "lakshmi strakcharals", "श्री साई प्रकाश": "shri sai prakash", "पंप संगम": "pamp sangam",
		"रेज़िन": "rezin", "૧૨ જોશી": "12 joshi", "লক্ষ্মী": "lakshmi", "ਭਾਰਤ": "bharat", "tata स्टील": "tata stil",
		"ಕೃಷ್ಣ": "krishn", "శ్రీ": "shri", "ଭାରତ": "bharat", "ഭാരത്": "bharat",
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
