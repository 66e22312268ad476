// Package webhook carries notices to an address of an account's owner, over HTTP. Requests are signed as by
// Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over id, time and body.
//
// Whoever sets an address makes the writer call it. So the address is HTTPS, what it resolves to is checked
// when the connection is made and must be public, redirects are not followed, and of an answer only the
// status is kept.
package webhook
