package handler

import (
	"strings"

	"regedge/handler/charge"
	"regedge/handler/ident"
)

// SandboxPerMinute is the sandbox key's rate, in requests per UTC minute and client
// address.
const SandboxPerMinute = 30

// caller is who asks, and what the plan lets them see.
type caller struct {
	account, key int64
	sandbox      bool
	perMinute    int64
	email, phone bool
}

// accessStatement finds a key by its hash (?1) with its account and plan.
const accessStatement = `
SELECT k.id, k.account, a.suspended, p.api_access, p.per_minute, p.email, p.phone
FROM api_key k
JOIN account a ON a.id = k.account
JOIN plan p ON p.id = a.plan
WHERE k.hash = ?1`

// authenticate finds out who asks. Unknown, malformed and revoked keys get the same
// answer, so that nobody learns which keys once existed.
func (c *call) authenticate(req *Request) (caller, problem) {
	key, present := bearer(req.Authorization)
	if !present {
		return caller{}, problem{code: MissingAPIKey}
	}
	if key == ident.SandboxKey {
		return caller{sandbox: true, perMinute: SandboxPerMinute, email: true, phone: true}, problem{}
	}
	if !ident.ValidKey(key) {
		return caller{}, problem{code: InvalidAPIKey}
	}
	hash := ident.Hash(key)
	result, err := c.Access.Query(accessStatement, []Value{{Kind: Blob, Text: string(hash[:])}})
	if err != nil {
		return caller{}, problem{code: charge.MeteringUnavailable, retryAfter: 1,
			detail: "Accounts cannot be checked at the moment. Try again in a second."}
	}
	if result.Rows() == 0 {
		return caller{}, problem{code: InvalidAPIKey}
	}
	row := result.Row(0)
	if row[2].Int != 0 {
		return caller{}, problem{code: AccountSuspended}
	}
	if row[3].Int == 0 {
		return caller{}, problem{code: PlanWithoutAPIAccess}
	}
	return caller{
		key:       row[0].Int,
		account:   row[1].Int,
		perMinute: row[4].Int,
		email:     row[5].Int != 0,
		phone:     row[6].Int != 0,
	}, problem{}
}

// bearer takes the key out of the Authorization header (RFC 6750, section 2.1). It is
// not present when there is no header or no key in it; several headers or another scheme
// are a key that fits nobody.
func bearer(authorization []string) (key string, present bool) {
	if len(authorization) == 0 {
		return "", false
	}
	if len(authorization) > 1 {
		return "", true
	}
	scheme, key, _ := strings.Cut(strings.Trim(authorization[0], " \t"), " ")
	key = strings.TrimLeft(key, " ")
	if !charge.SameName(scheme, "Bearer") {
		return "", scheme != ""
	}
	return key, key != ""
}
