package history

import "time"

// The calls of Keys.
const (
	Made      Kind = iota + 101 // an operator made the key
	Revoked                     // an operator revoked it
	Suspended                   // an operator suspended its account
	Resumed                     // an operator lifted that
	Admitted                    // a client was let in
	Unknown                     // a client got 401
	Forbidden                   // a client got 403
)

// access is the state of a key.
type access struct{ made, revoked, suspended bool }

// Keys is the model of whether a key is admitted. A change takes effect for clients at most two seconds
// after the operator's call has returned (G8).
func Keys() Model {
	return Model{
		name: "the key",
		kinds: map[Kind]string{
			Made: "make", Revoked: "revoke", Suspended: "suspend", Resumed: "resume", Admitted: "admitted", Unknown: "401", Forbidden: "403",
		},
		init: access{}, step: stepKey,
		early: map[Kind]time.Duration{Admitted: Stale, Unknown: Stale, Forbidden: Stale},
	}
}

func stepKey(state any, c Call) (bool, any) {
	k := state.(access)
	valid := k.made && !k.revoked
	switch c.Kind {
	case Made:
		k.made = true
	case Revoked:
		k.revoked = true
	case Suspended:
		k.suspended = true
	case Resumed:
		k.suspended = false
	case Admitted:
		return valid && !k.suspended, k
	case Unknown:
		return !valid, k
	case Forbidden:
		return valid && k.suspended, k
	}
	return true, k
}
