// Package dashboard is the pages that the writer serves to people: owners of accounts
// see their balance, usage and keys, and make and revoke keys; operators manage accounts
// and look at the edges.
//
// The pages are rendered here and need no scripts. Whoever signs in has a session, a row
// of the ledger database that is found by the hash of a cookie. What a page changes goes
// through the writer, either its API or its transactions, so that it is fenced like every
// other change and entered into the audit log with it.
//
// What holds at all times:
//   - A password, a session or an invitation can't be had from the database: it holds a
//     slow hash of the first, and the hashes of the other two, which are random.
//   - A form is obeyed only when it comes from a page of this host (the browser says so)
//     and carries the token of the session, or of the browser that is not signed in yet.
//   - A session's id is made at sign-in, never taken from the browser.
//   - Whether an e-mail address is known shows neither in an answer nor in its time.
//   - An owner reaches what belongs to their account only; the rest does not exist.
package dashboard
