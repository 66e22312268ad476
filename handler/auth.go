package handler

import (
	"regedge/handler/charge"
	"regedge/handler/ident"
	"regedge/handler/network"
)

// SandboxPerMinute is the sandbox key's rate, in requests per UTC minute and client address
// (docs/contract.md, "Sandbox").
const SandboxPerMinute = 30

// caller is the authenticated client and what its plan includes.
type caller struct {
	account, key int64
	sandbox      bool
	perMinute    int64
	keyPerMinute int64 // 0 for none
	limitedUntil int64 // as in charge.Request
	email, phone bool
}

// accessStatement finds a key by the hash ?1, of its secret or of the one before its last rotation,
// with its account, plan, expiry and limits.
const accessStatement = `
SELECT k.id, k.account, a.suspended, p.api_access, p.per_minute, p.email, p.phone, k.ends_at, k.allowed, k.per_minute, k.limited_until
FROM (SELECT id, account, ends_at, allowed, per_minute, limited_until FROM api_key WHERE hash = ?1
  UNION ALL SELECT id, account, old_ends_at, allowed, per_minute, limited_until FROM api_key WHERE old_hash = ?1) k
JOIN account a ON a.id = k.account
JOIN plan p ON p.id = a.plan`

// authenticate identifies the caller by its API key (docs/contract.md, "Authentication").
// Unknown, malformed, revoked and expired keys get the same answer, which does not tell which keys once
// existed.
func (c *call) authenticate(req *Request) (caller, problem) {
	key, present := ident.Bearer(req.Values("Authorization"))
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
		c.cause = err
		return caller{}, problem{code: charge.MeteringUnavailable, retryAfter: 1,
			detail: "Accounts cannot be checked at the moment. Try again in a second."}
	}
	if result.Rows() == 0 {
		return caller{}, problem{code: InvalidAPIKey}
	}
	row := result.Row(0)
	// The end is compared here, and not in the statement: its results are cached.
	if ends := row[7].Int; ends != 0 && c.Clock.UnixMilli() >= ends {
		return caller{}, problem{code: InvalidAPIKey}
	}
	// Checked before the account, so that a stolen key reveals nothing about it.
	if allowed := network.List(row[8].Text); allowed != "" {
		if client := req.ClientAddr(); !allowed.Contains(client) {
			return caller{}, addressProblem(client)
		}
	}
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

		keyPerMinute: row[9].Int,
		limitedUntil: row[10].Int,
	}, problem{}
}

// addressProblem names the address that was seen, which a proxy may have changed.
func addressProblem(client string) problem {
	if client == "" {
		return problem{code: AddressNotAllowed}
	}
	return problem{code: AddressNotAllowed,
		detail: "The key may not be used from " + client + ". Its owner says from which networks it may."}
}
