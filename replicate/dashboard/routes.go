package dashboard

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/julienschmidt/httprouter"

	"regedge/replicate/metering/writer"
)

// Handler serves the pages and passes API paths on to the writer's API.
func (d *Dashboard) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAPI(r.URL.Path) {
			d.config.Writer.Handler().ServeHTTP(w, r)
			return
		}
		d.pages.ServeHTTP(w, r)
	})
}

// isAPI reports whether a path belongs to the writer's API.
func isAPI(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return strings.HasPrefix(path, "/v1/")
}

// router names a page's pattern in its requests. The log has the pattern instead of the path, which may hold the token
// of an invitation.
type router struct{ *httprouter.Router }

// GET answers HEAD, too: net/http leaves out the body.
func (r router) GET(pattern string, h httprouter.Handle) {
	r.handle(http.MethodGet, pattern, h)
	r.handle(http.MethodHead, pattern, h)
}

func (r router) POST(pattern string, h httprouter.Handle) { r.handle(http.MethodPost, pattern, h) }

// reads reports whether a request asks for a page, and changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func (r router) handle(method, pattern string, h httprouter.Handle) {
	r.Handle(method, pattern, func(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
		r.Pattern = pattern
		h(w, r, p)
	})
}

// routes registers the handlers. Paths are matched exactly, without redirects.
func (d *Dashboard) routes() router {
	r := router{httprouter.New()}
	r.RedirectFixedPath, r.RedirectTrailingSlash, r.HandleOPTIONS = false, false, false
	r.NotFound = d.refusing(errMissing)
	r.MethodNotAllowed = d.wrongMethod(r)
	r.GET("/assets/:file", d.asset)
	d.guestRoutes(r)
	d.ownerRoutes(r)
	d.operatorRoutes(r)
	return r
}

func (d *Dashboard) guestRoutes(r router) {
	r.GET("/", d.serve(signedIn, d.start))
	r.GET("/sign-in", d.serve(anyone, d.signInPage))
	r.POST("/sign-in", d.serve(anyone, d.signIn))
	r.POST("/sign-in/code", d.serve(anyone, d.enterCode))
	r.POST("/sign-out", d.serve(signedIn, d.signOut))
	r.GET("/invitations/:token", d.serve(anyone, d.invitationPage))
	r.POST("/invitations/:token", d.serve(anyone, d.acceptInvitation))
	r.GET("/settings", d.serve(signedIn, d.settingsPage))
	r.POST("/settings/sign-out-everywhere", d.serve(signedIn, d.signOutEverywhere))
	r.POST("/settings/password", d.serve(signedIn, d.changePassword))
	r.GET("/settings/two-factor", d.serve(signedIn, d.twoFactorPage))
	r.POST("/settings/two-factor", d.serve(signedIn, d.switchOnTwoFactor))
	r.POST("/settings/two-factor/off", d.serve(signedIn, d.switchOffTwoFactor))
	r.GET("/activity", d.serve(signedIn, d.activityPage))
}

func (d *Dashboard) ownerRoutes(r router) {
	r.GET("/keys", d.serve(owner, d.keysPage))
	r.POST("/keys", d.serve(owner, d.makeKey))
	r.GET("/keys/:id", d.serve(owner, d.keyPage))
	r.POST("/keys/:id/name", d.serve(owner, d.renameKey))
	r.POST("/keys/:id/end", d.serve(owner, d.changeKeyEnd))
	r.POST("/keys/:id/addresses", d.serve(owner, d.changeKeyAddresses))
	r.POST("/keys/:id/limits", d.serve(owner, d.changeKeyLimits))
	r.POST("/keys/:id/rotate", d.serve(owner, d.rotateKey))
	r.GET("/keys/:id/revoke", d.serve(owner, d.revokePage))
	r.POST("/keys/:id/revoke", d.serve(owner, d.revokeKey))
	r.GET(tokensPath, d.serve(owner, d.tokensPage))
	r.POST(tokensPath, d.serve(owner, d.makeToken))
	r.GET(tokensPath+"/:id/end", d.serve(owner, d.endTokenPage))
	r.POST(tokensPath+"/:id/end", d.serve(owner, d.endToken))
	r.GET(webhookPath, d.serve(owner, d.webhookPage))
	r.POST(webhookPath, d.serve(owner, d.setWebhook))
	r.POST(webhookPath+"/test", d.serve(owner, d.testWebhook))
	r.POST(webhookPath+"/secret", d.serve(owner, d.renewWebhook))
	r.POST(webhookPath+"/remove", d.serve(owner, d.removeWebhook))
	r.GET(mailPath, d.serve(owner, d.mailPage))
	r.POST(mailPath, d.serve(owner, d.setMail))
	r.POST(mailPath+"/test", d.serve(owner, d.testMail))
	r.POST(mailPath+"/remove", d.serve(owner, d.removeMail))
	r.GET("/settings/api", d.serve(owner, d.ownAPIPage))
	r.GET("/requests", d.serve(owner, d.requestsPage))
	r.GET("/usage", d.serve(owner, d.usagePage))
	r.GET("/usage.csv", d.serve(owner, d.usageCSV))
	r.GET("/credits", d.serve(owner, d.creditsPage))
	r.GET("/credits.csv", d.serve(owner, d.creditsCSV))
}

func (d *Dashboard) operatorRoutes(r router) {
	r.GET("/accounts", d.serve(operator, d.accountsPage))
	r.POST("/accounts", d.serve(operator, d.addAccount))
	r.GET("/accounts/:id", d.serve(operator, d.accountPage))
	r.GET("/accounts/:id/usage", d.serve(operator, d.accountUsagePage))
	r.GET("/accounts/:id/usage.csv", d.serve(operator, d.accountUsageCSV))
	r.GET("/accounts/:id/credits", d.serve(operator, d.accountCreditsPage))
	r.GET("/accounts/:id/credits.csv", d.serve(operator, d.accountCreditsCSV))
	r.POST("/accounts/:id/plan", d.serve(operator, d.changePlan))
	r.POST("/accounts/:id/credits", d.serve(operator, d.changeCredits))
	r.GET("/accounts/:id/suspension", d.serve(operator, d.suspendPage))
	r.POST("/accounts/:id/suspension", d.serve(operator, d.changeSuspension))
	r.POST("/accounts/:id/invitations", d.serve(operator, d.inviteOwner))
	r.GET("/people", d.serve(operator, d.peoplePage))
	r.POST("/people", d.serve(operator, d.inviteOperator))
	r.GET("/people/:id/remove", d.serve(operator, d.removePage))
	r.POST("/people/:id/remove", d.serve(operator, d.removePerson))
	r.GET("/edges", d.serve(operator, d.edgesPage))
	r.GET("/api", d.serve(operator, d.apiPage))
}

// pageOf returns the path of the page whose form is sent to a path: the same path or the one above it; "" for none.
func (r router) pageOf(sent string) string {
	for _, page := range []string{sent, path.Dir(sent)} {
		if found, _, _ := r.Lookup(http.MethodGet, page); found != nil && page != "/" {
			return page
		}
	}
	return ""
}

// wrongMethod refuses a method. But a browser that loads the address to which a form is sent is led to the form's page.
func (d *Dashboard) wrongMethod(r router) http.Handler {
	refused := writer.WithoutOptions(d.refusing(errMethod))
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		page := r.pageOf(q.URL.Path)
		if !reads(q) || page == "" {
			refused.ServeHTTP(w, q)
			return
		}
		w.Header().Del("Allow")
		v := &visit{w: w, r: q}
		d.harden(v)
		d.write(v, see((&url.URL{Path: page}).String(), ""))
	})
}

// refusing returns a handler that answers every request with the same refusal.
func (d *Dashboard) refusing(why *refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r, address: d.config.Client(r)}
		d.harden(v)
		if err := d.identify(v); err != nil {
			d.refuse(v, d.refusalOf(v, err))
			return
		}
		d.refuse(v, why)
	})
}

func (d *Dashboard) asset(w http.ResponseWriter, r *http.Request, p httprouter.Params) {
	if found, ok := d.assets[p.ByName("file")]; ok {
		found.Serve(w, r)
		return
	}
	d.refusing(errMissing).ServeHTTP(w, r)
}
