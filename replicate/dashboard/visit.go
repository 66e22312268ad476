package dashboard

import (
	"errors"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/writer"
)

// visit is one request to a page, with its visitor.
type visit struct {
	w       http.ResponseWriter
	r       *http.Request
	params  httprouter.Params
	address string // of the client
	user    *user  // nil when nobody is signed in
	session session
	secret  string // of the session or guest cookie; form tokens derive from it
	device  string // of a new device cookie
	entry   string // a browser that the person used before: a sign-in counts for it. Empty for none
	moved   bool   // the form began or ended a session, or used up an invitation
	left    bool   // the form ended the visitor's session
	began   string // the secret of the session that began
}

// act makes the audit log's entry for something that this visitor does to an account.
func (v *visit) act(name string, account int64, detail string) writer.Act {
	a := writer.Act{Account: account, Address: v.address, Name: name, Detail: detail}
	if v.user != nil {
		a.Actor, a.Owner = v.user.Email, !v.user.Operator
	}
	return a
}

// agent is the User-Agent, without what can't be printed.
func (v *visit) agent() string {
	return printable(v.r.UserAgent(), maxAgent)
}

// id reads the number in the path.
func (v *visit) id() (int64, error) {
	id, err := strconv.ParseInt(v.params.ByName("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, errMissing
	}
	return id, nil
}

// answer is a handler's result: a page with its data, or a redirect.
type answer struct {
	status int // 200 when 0
	page   string
	title  string
	data   any
	error  string // message about the form, shown above the page
	to     string // path of a redirect, 303
	// searches says that the page's script may call the lookups.
	searches bool
	// packed allows gzip. A page with text chosen by a stranger must not have it: its length would reveal
	// other parts of it, such as the token of a form (BREACH).
	packed bool
}

// see redirects to another page, which shows the message for done.
func see(path, done string) answer {
	if done != "" {
		path += "?done=" + done
	}
	return answer{to: path}
}

// refusal is an error that is shown to the visitor.
type refusal struct {
	status       int
	title, words string
}

func (r *refusal) Error() string { return r.title }

var (
	errMissing    = &refusal{http.StatusNotFound, "No such page", "There is nothing at this address."}
	errMethod     = &refusal{http.StatusMethodNotAllowed, "Not possible here", "This page does not take that method."}
	errForeign    = &refusal{http.StatusForbidden, "Refused", "The form came from another site."}
	errOldForm    = &refusal{http.StatusForbidden, "This page has expired", "Load it again and send the form once more."}
	errNoCookie   = &refusal{errOldForm.status, errOldForm.title, errOldForm.words + " If that does not help, allow cookies for this site: its forms need one."}
	errSentBefore = &refusal{http.StatusUnprocessableEntity, "This form was sent before", "It was sent with other values, and those hold. Load the page again to change more."}
	errUncertain  = &refusal{http.StatusServiceUnavailable, "It is not certain that this was done", "The service is being restarted or repaired. Reload this page to send the form again: whatever happened, it is done once."}
	errFormType   = &refusal{http.StatusUnsupportedMediaType, "Refused", "Forms are sent as application/x-www-form-urlencoded."}
	errFormSize   = &refusal{http.StatusRequestEntityTooLarge, "The form is too large", "No form of these pages is that long."}
	errFormBroken = &refusal{http.StatusBadRequest, "The form can't be read", "Load the page again and send the form once more."}
	errCrowded    = &refusal{http.StatusServiceUnavailable, "Too many sign-ins at once", "Try again in a few seconds."}
	errTooMany    = &refusal{http.StatusTooManyRequests, "Too much at once", "Try again in a few seconds."}
	errPaced      = &refusal{http.StatusTooManyRequests, "Too many forms", "You sent many forms within a minute. Try again a minute later."}
	errOffline    = &refusal{http.StatusServiceUnavailable, "Not available", "The service is being restarted or repaired. Try again in a minute."}
	errBroken     = &refusal{http.StatusInternalServerError, "Something went wrong", "The error was logged; it is not your fault. Try again in a minute."}
)

// refusalOf maps an error to a refusal. Internal errors are logged, not shown.
func (d *Dashboard) refusalOf(v *visit, err error) *refusal {
	var known *refusal
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, writer.ErrNotFound):
		return errMissing
	case errors.Is(err, writer.ErrMalformed):
		return errFormBroken
	case errors.Is(err, writer.ErrKeyReused):
		return errSentBefore
	case errors.Is(err, errBusy):
		return errCrowded
	case errors.Is(err, writer.ErrTooMany):
		return errTooMany
	}
	if v.r.Context().Err() == nil { // else the visitor has gone
		d.config.Logger.Error("page failed", "method", v.r.Method, "route", v.r.Pattern, "error", err)
	}
	if errors.Is(err, writer.ErrUncertain) {
		return errUncertain
	}
	if errors.Is(err, writer.ErrUnavailable) || errors.Is(err, writer.ErrFenced) {
		return errOffline
	}
	return errBroken
}

// handler handles a visit.
type handler func(*visit) (answer, error)

// role says who may see a page.
type role int

const (
	anyone   role = iota // signed in or not
	signedIn             // owners and operators
	owner
	operator
)

// may checks whether a visitor may see the pages of a role. Pages of another role answer
// 404; a visitor without a session is redirected to the sign-in.
func (v *visit) may(who role) (answer, error) {
	switch {
	case who == anyone:
		return answer{}, nil
	case v.user == nil:
		return see("/sign-in", ""), nil
	case who == owner && v.user.Operator, who == operator && !v.user.Operator:
		return answer{}, errMissing
	}
	return answer{}, nil
}

// serve makes a router's handler: it identifies the visitor, checks forms, and writes the
// answer.
func (d *Dashboard) serve(who role, h handler) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
		v := &visit{w: w, r: r, params: p, address: d.config.Client(r)}
		d.harden(v)
		a, err := d.answer(v, who, h)
		if err != nil {
			d.refuse(v, d.refusalOf(v, err))
			return
		}
		d.write(v, a)
	}
}

func (d *Dashboard) answer(v *visit, who role, h handler) (answer, error) {
	if err := d.identify(v); err != nil {
		return answer{}, err
	}
	if v.user != nil && v.user.Operator {
		v.r = v.r.WithContext(writer.OfOperator(v.r.Context()))
	}
	if v.r.Method == http.MethodPost {
		return d.answerForm(v, who, h)
	}
	return v.handle(who, h)
}

// handle calls the handler if the visitor may see the page.
func (v *visit) handle(who role, h handler) (answer, error) {
	if a, err := v.may(who); err != nil || a.to != "" {
		return a, err
	}
	return h(v)
}

// answerForm answers a form. A form that began or ended a session, or used up an invitation, gets the first answer again
// when sent twice, even at once, when the second finds its session ended only while it is handled.
func (d *Dashboard) answerForm(v *visit, who role, h handler) (answer, error) {
	refused := d.checkForm(v)
	if refused != nil && !errors.Is(refused, errOldForm) {
		return answer{}, refused
	}
	if a, again, err := d.again(v); again || err != nil {
		return a, err
	}
	if refused == nil && who == owner && v.user != nil && !v.user.Operator {
		if d.config.Writer.CountForm(v.user.ID) != nil {
			refused = errPaced
		}
	}
	switch {
	case refused != nil && len(v.r.Cookies()) == 0:
		return answer{}, errNoCookie
	case refused != nil:
		return answer{}, refused
	}
	a, err := v.handle(who, h)
	if v.moved && err == nil {
		d.finished.put(v, d.now(), a)
	} else if before, again, failed := d.again(v); again {
		return before, failed
	}
	return a, err
}

// identify finds the session, or else sets the guest cookie that form tokens derive from.
func (d *Dashboard) identify(v *visit) error {
	if c, err := v.r.Cookie(d.sessionCookie(v.r)); err == nil {
		if v.user, v.session, err = d.findSession(v.r.Context(), c.Value); err != nil {
			return err
		}
		if v.user != nil {
			v.secret = c.Value
			return nil
		}
	}
	if c, err := v.r.Cookie(d.guestCookie(v.r)); err == nil && len(c.Value) == secretLength {
		v.secret = c.Value
		return nil
	}
	if reads(v.r) {
		v.secret, _ = d.newSecret()
		d.setCookie(v.w, v.r, d.guestCookie(v.r), v.secret)
	}
	return nil
}

// secretLength is the length of a secret, in characters.
const secretLength = 43

// printable drops the characters that can't be shown, and cuts after limit characters.
func printable(text string, limit int) string {
	kept := make([]rune, 0, min(len(text), limit))
	for _, c := range strings.ToValidUTF8(text, "") {
		if len(kept) < limit && writer.Printable(string(c)) {
			kept = append(kept, c)
		}
	}
	return string(kept)
}

// maxForm is the largest form, in bytes. The longest field has 1,000 characters.
const maxForm = 16 << 10

// policy allows a page this host's own files, and no framing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// harden sets the security headers of every answer. The referrer is kept within this host:
// with no-referrer, browsers send no Origin with a form.
func (d *Dashboard) harden(v *visit) {
	header := v.w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Cookie")
	if d.secure(v.r) {
		header.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// sameOrigin checks Sec-Fetch-Site, or else Origin.
var sameOrigin = http.NewCrossOriginProtection()

// checkForm parses the form of a POST and refuses it unless it comes from one of our pages: by its
// origin, and by its token, which also stops clients that send no origin. The token is the
// Idempotency-Key of the form's change.
func (d *Dashboard) checkForm(v *visit) error {
	if sameOrigin.Check(v.r) != nil {
		return errForeign
	}
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return errFormType
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return errFormSize
		}
		return errFormBroken
	}
	token := v.field("token")
	if !validFormToken(v.secret, token) {
		return errOldForm
	}
	v.r = v.r.WithContext(writer.WithIdempotencyKey(v.r.Context(), token))
	return nil
}

// field is a field of the form as typed. The query of the URL does not count.
func (v *visit) field(name string) string { return v.r.PostForm.Get(name) }

// line is a field of one line, trimmed and printable.
func (v *visit) line(name string) string {
	return strings.TrimSpace(printable(v.field(name), maxForm))
}
