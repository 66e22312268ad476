// Package webhook carries notices to an address of an account's owner, over HTTP. Requests are signed as by
// Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 over id, time and body.
//
// An owner's address makes the writer call it. So it must be HTTPS; the resolved IP address is checked at
// the connection and must be public; redirects are not followed; and only the status of an answer is kept.
package webhook
