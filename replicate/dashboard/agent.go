package dashboard

import "strings"

// The acts whose detail is the User-Agent of the browser that was used.
const (
	signInAct   = "sign in"
	passwordAct = "enter password"
)

// sign is a text in a User-Agent, and the common name of its browser or system.
type sign struct{ text, name string }

// browsers and systems are searched in this order: most browsers name older ones as well (RFC 9110,
// section 10.1.5, lets them).
var (
	browsers = []sign{
		{"Edg/", "Edge"}, {"EdgA/", "Edge"}, {"EdgiOS/", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"},
		{"Vivaldi/", "Vivaldi"}, {"FxiOS/", "Firefox"}, {"Firefox/", "Firefox"}, {"CriOS/", "Chrome"},
		{"HeadlessChrome/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
	}
	systems = []sign{
		{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"CrOS", "ChromeOS"},
		{"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"Macintosh", "macOS"}, {"Linux", "Linux"},
	}
)

// browserName formats a User-Agent, such as "Chrome on Linux". An unknown one is returned as it is.
func browserName(agent string) string {
	browser, system := named(browsers, agent), named(systems, agent)
	switch {
	case agent == "":
		return "unknown"
	case browser == "":
		return agent
	case system == "":
		return browser
	}
	return browser + " on " + system
}

func named(signs []sign, agent string) string {
	for _, s := range signs {
		if strings.Contains(agent, s.text) {
			return s.name
		}
	}
	return ""
}
