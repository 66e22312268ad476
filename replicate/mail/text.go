package mail

import (
	"encoding/json"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"

	"regedge/replicate/notice"
)

// SettingsPath is the page of the dashboard where an owner switches mail on and off.
const SettingsPath = "/settings/mail"

// minutes is the format of a time in a message, in UTC.
const minutes = "2 January 2006, 15:04 UTC"

// maxName bounds a name chosen by an owner or operator in a message, in characters.
const maxName = 100

var (
	errAddress = errors.New("the address can't be used")
	errContent = errors.New("the notice can't be read")
)

// content is the content of a notice.
type content struct {
	Timestamp time.Time
	Account   int64
	Data      struct {
		Balance, Threshold int64
		Month, Day         string
		Used, Volume       int64
		Cap, Key           int64
		Credits            int64
		Name, Begins       string
		Expires, Until     time.Time
	}
}

// compose makes the message of a notice. All text of its header but the address is the program's own or the
// operator's.
func (c *Carrier) compose(n notice.Notice) (*gomail.Msg, error) {
	if !validAddress(n.Address) {
		return nil, errAddress
	}
	var said content
	if err := json.Unmarshal([]byte(n.Body), &said); err != nil {
		return nil, errContent
	}
	subject, text, path := said.words(n)
	if subject == "" {
		return nil, errContent
	}
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	err := errors.Join(message.FromFormat(c.config.From.Name, c.config.From.Address), message.To(n.Address))
	if err != nil {
		return nil, errAddress
	}
	_, domain, _ := strings.Cut(c.config.From.Address, "@")
	message.SetMessageIDWithValue(n.ID + "@" + domain) // the same at each attempt
	message.SetDateWithValue(said.Timestamp)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	message.Subject(subject)
	message.SetBodyString(gomail.TypeTextPlain, fmt.Sprintf("%s\n\n%s\n\nAccount: %s (number %d)\nWhen: %s\n\n-- \nYou have switched these messages on. Switch them off at %s\n",
		text, c.config.Dashboard+path, named(n.Account), said.Account, said.Timestamp.UTC().Format(minutes), c.config.Dashboard+SettingsPath))
	return message, nil
}

// validAddress reports whether an address has no name, and nothing that could break a header.
func validAddress(text string) bool {
	parsed, err := netmail.ParseAddress(text)
	return err == nil && parsed.Address == text && !strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) })
}

// words returns the subject, the text, and the page that shows more; nothing for a kind that only a newer writer has.
func (said *content) words(n notice.Notice) (subject, text, path string) {
	d := &said.Data
	key := fmt.Sprintf("The key %s (%s…)", named(d.Name), named(d.Begins))
	switch n.Kind {
	case notice.LowBalance:
		return "Credits are low", fmt.Sprintf("Credits left: %d. You wanted to be told below %d. When none are left, lookups are refused with 402.", d.Balance, d.Threshold), "/credits"
	case notice.VolumeUsed:
		return "80% of the month's calls are used", fmt.Sprintf("In %s (UTC) %d of the plan's %d calls are used. When all are, lookups are refused with 429 until the month ends.", named(d.Month), d.Used, d.Volume), "/usage"
	case notice.NotFoundCap:
		return "A key is at its cap of not-found lookups", fmt.Sprintf("%s had %d lookups on %s (UTC) that found nothing, which is its daily cap. Its lookups are refused with 429 until the day ends.", key, d.Cap, named(d.Day)), fmt.Sprintf("/keys/%d", d.Key)
	case notice.KeyCreditsSpent:
		return "A key has spent its credits of the month", fmt.Sprintf("%s has spent its %d credits of %s (UTC). Its lookups are refused with 429 until %s, unless you raise its limit.", key, d.Credits, named(d.Month), d.Until.UTC().Format(minutes)), fmt.Sprintf("/keys/%d", d.Key)
	case notice.KeyEnding:
		return "A key ends soon", fmt.Sprintf("%s ends on %s. Lookups with it are then refused with 401.", key, d.Expires.UTC().Format(minutes)), fmt.Sprintf("/keys/%d", d.Key)
	case notice.Test:
		return "Test of e-mail notices", "This is a test. Notices of your account will come like this.", SettingsPath
	}
	return "", "", ""
}

// named is text that somebody has chosen, on one line and not too long.
func named(text string) string {
	runes := []rune(text)
	if len(runes) > maxName {
		runes = append(runes[:maxName], '…')
	}
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = ' '
		}
	}
	return string(runes)
}
