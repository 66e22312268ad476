// Package dashboard serves the writer's pages for people: account owners see balance and
// usage and manage their keys; operators manage accounts and watch the edges.
//
// The pages are rendered on the server and work without scripts. A sign-in creates a
// session: a row of the ledger database, found by the hash of a cookie. Every change goes
// through the writer's API or its transactions, so that it is fenced like any other change
// and written to the audit log in the same transaction.
//
// Invariants:
//   - The database reveals no password, session or invitation: it holds a slow hash of a password,
//     and hashes of the other two, which are random. Only the secret of an authenticator app is
//     stored as it is, since checking a code takes the secret.
//   - A user with two-factor authentication has a session only after a code, which is good once.
//   - A form is accepted only from a page of this host (by Sec-Fetch-Site or Origin) and
//     with the token of the session, or of the browser's guest cookie before sign-in.
//   - A session id is generated at sign-in, never taken from the browser.
//   - Strangers can't keep a person out of a browser in which they have signed in before, and a crowd
//     at the sign-in costs one core and the memory of one hash.
//   - Neither an answer nor its time tells whether an e-mail address is known.
//   - An owner sees only what belongs to their account; everything else answers 404.
//
// # Files
//
//	routes.go                      all pages and forms, and who may see each
//	visit.go, page.go, finished.go a request and its answer; templates and how a page is written; forms sent twice
//	config.go                      what a dashboard needs
//
//	signin.go, secondstep.go, session.go, device.go    signing in
//	throttle.go, entries.go, lane.go   how often, and how many passwords are hashed at once
//	password.go, guessable.go, code.go, qr.go          passwords and codes
//	invitation.go, settings.go, twofactor.go, agent.go a person's own sign-in
//
//	account.go, chart.go, usage.go, requests.go, credits.go   an account's overview, calls and credits
//	keys.go, keyform.go, keychange.go, tokens.go       keys, and tokens of the API
//	webhooks.go, mails.go          notices
//	accounts.go, edges.go, people.go, activity.go      pages of operators (releases are in edges.go)
//	apipage.go                     the reference of the writer's API
package dashboard
