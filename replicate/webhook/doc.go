// Package webhook tells the owner of an account, at an address of theirs, what they should know of: few
// credits left, 80 % of the month's calls used, a key at its not-found cap, a key that ends soon.
//
// An event is a row of the ledger from the moment it is found until well after it was delivered, so a
// restart loses none. It is sent until it is answered with 2xx, with growing pauses, for about two days: at
// least once, under an id by which a receiver knows it again. Requests are signed as by Standard Webhooks
// (https://www.standardwebhooks.com): HMAC-SHA256 over id, time and body.
//
// Whoever sets an address makes the writer call it. So the address is HTTPS, what it resolves to is checked
// when the connection is made and must be public, redirects are not followed, and of an answer only the
// status is kept.
package webhook
