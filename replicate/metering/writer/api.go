package writer

import "time"

// Projected is the part of an answer that tells whether edges know of a change.
type Projected struct {
	// Pending says that the change is stored, but not yet projected for edges because the access database can't
	// be reached. The projection follows.
	Pending bool `json:"pending,omitempty"`
}

// IsPending returns Pending.
func (p Projected) IsPending() bool { return p.Pending }

func (p *Projected) setPending(pending bool) { p.Pending = pending }

// Account owns keys and credits. At all times Bought + Compensated = Left + Leased + Spent +
// Lost, all in credits.
type Account struct {
	Projected
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Email       string    `json:"email"`
	Plan        string    `json:"plan"`
	Suspended   bool      `json:"suspended"`
	Created     time.Time `json:"created"`
	Bought      int64     `json:"bought"`
	Compensated int64     `json:"compensated"`
	Spent       int64     `json:"spent"`
	Lost        int64     `json:"lost"`
	Leased      int64     `json:"leased"`
	Left        int64     `json:"left"`
	// Deducting is the amount that a negative adjustment still has to take, as soon as leases are
	// returned.
	Deducting int64 `json:"deducting"`
	// Balance is Left + Leased: what the account can still spend.
	Balance int64 `json:"balance"`
	// Keys is the number of active keys: neither revoked nor expired.
	Keys int `json:"keys"`
	// Owners are the e-mail addresses that sign in for the account, Invited those with an open
	// invitation that don't yet, both sorted.
	Owners  []string `json:"owners"`
	Invited []string `json:"invited"`
}

// AccountChange changes fields of an account; nil fields stay as they are.
type AccountChange struct {
	Name      *string `json:"name,omitempty"`
	Email     *string `json:"email,omitempty"`
	Plan      *string `json:"plan,omitempty"`
	Suspended *bool   `json:"suspended,omitempty"`
}

// Key is an API key of an account, without its secret.
type Key struct {
	Projected
	ID      int64      `json:"id"`
	Account int64      `json:"account"`
	Name    string     `json:"name"`
	Shown   string     `json:"shown"` // the first 4 characters of the secret
	Created time.Time  `json:"created"`
	Revoked *time.Time `json:"revoked"`
	// Expires is when the key ends by itself, nil for never. Edges refuse it from then on by their own
	// clocks. Expired says that it is past by the writer's clock.
	Expires *time.Time `json:"expires"`
	Expired bool       `json:"expired"`
	// OldShown and OldEnds describe the secret before the last rotation, empty and nil once it has ended.
	OldShown string     `json:"old_shown"`
	OldEnds  *time.Time `json:"old_ends"`
	// Allowed are the networks from which it may be used, in CIDR form; none for all.
	Allowed []string `json:"allowed_addresses"`
	// PerMinute bounds its requests in a UTC minute, 0 for as many as the plan allows.
	PerMinute int64 `json:"per_minute"`
	// MonthlyCredits bounds what it spends in a UTC month, 0 for any number. LimitedUntil is the end of the month
	// for which that is spent, nil while it is not.
	MonthlyCredits int64      `json:"monthly_credits"`
	LimitedUntil   *time.Time `json:"limited_until"`
}

// Active reports whether the key was neither revoked nor has expired.
func (k Key) Active() bool { return k.Revoked == nil && !k.Expired }

// KeyChange changes fields of a key; nil fields stay as they are.
type KeyChange struct {
	Name    *string    `json:"name,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// NeverExpires takes the end away.
	NeverExpires bool `json:"never_expires,omitempty"`
	// Allowed are networks and addresses from which it may be used from now on; an empty list allows all.
	Allowed *[]string `json:"allowed_addresses,omitempty"`
	// PerMinute is at most the plan's; 0 takes the limit away.
	PerMinute *int64 `json:"per_minute,omitempty"`
	// MonthlyCredits holds from the current month on; 0 takes the limit away.
	MonthlyCredits *int64 `json:"monthly_credits,omitempty"`
}

// KeySettings describe a key that is made. The zero value is a key without a name and without limits.
type KeySettings struct {
	Name      string     `json:"name"`
	Expires   *time.Time `json:"expires,omitempty"`
	Allowed   []string   `json:"allowed_addresses,omitempty"`
	PerMinute int64      `json:"per_minute,omitempty"`

	MonthlyCredits int64 `json:"monthly_credits,omitempty"`
}

// NewKey is a new API key with its secret, which is shown only once.
type NewKey struct {
	Key
	Secret string `json:"secret"` // the whole key; only its hash is stored
}

// Plan says what an account on it may do.
type Plan struct {
	Projected
	ID            string `json:"id"`
	APIAccess     bool   `json:"api_access"`
	PerMinute     int64  `json:"per_minute"`     // requests per UTC minute
	MonthlyVolume int64  `json:"monthly_volume"` // charged calls per UTC month
	Email         bool   `json:"email"`          // company e-mail is returned
	Phone         bool   `json:"phone"`          // company phone is returned
}

// PlanChange changes the fields of a plan that are not nil.
type PlanChange struct {
	APIAccess     *bool  `json:"api_access,omitempty"`
	PerMinute     *int64 `json:"per_minute,omitempty"`
	MonthlyVolume *int64 `json:"monthly_volume,omitempty"`
	Email         *bool  `json:"email,omitempty"`
	Phone         *bool  `json:"phone,omitempty"`
}

// The kinds of a credit entry. Bought and compensated are made by operators, the others
// by the ledger.
const (
	Bought      = "bought"
	Compensated = "compensated"
	Spent       = "spent"
	Lost        = "lost"
)

// DefaultPlan is the plan of a new account unless another one is named.
const DefaultPlan = "starter"

// PlanByDefault chooses the plan that a form proposes: DefaultPlan, or else the first with API access.
func PlanByDefault(plans []Plan) string {
	first := ""
	for _, p := range plans {
		if p.ID == DefaultPlan {
			return p.ID
		}
		if p.APIAccess && first == "" {
			first = p.ID
		}
	}
	return first
}

// CreditChange adds credits to an account, or takes them when Amount is negative. What can't be
// taken at once is taken when leases are returned. A balance never falls below zero.
type CreditChange struct {
	Amount int64  `json:"amount"`
	Kind   string `json:"kind"` // Bought (also when empty) or Compensated
	Note   string `json:"note"`
	// AtMost caps a negative Amount at the account's balance. Without it, an Amount beyond the balance
	// is refused with ErrBeyondBalance.
	AtMost bool `json:"at_most,omitempty"`
}

// CreditEntry is one row of the append-only credit journal. An account's entries sum to
// its balance plus what it spent since its last Spent entry, at most an hour ago.
type CreditEntry struct {
	ID      int64     `json:"id"`
	Account int64     `json:"account"`
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`
	Amount  int64     `json:"amount"`
	Note    string    `json:"note"`
}

// Node is an edge as the writer knows it.
type Node struct {
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Retired bool      `json:"retired"`
	// Fenced says that all of this edge's messages are refused, since the ledger could not store some.
	Fenced  bool   `json:"fenced,omitempty"`
	Epoch   uint64 `json:"epoch"`   // 0 before the first contact
	Applied uint64 `json:"applied"` // sequence of the newest batch of Epoch
	// Seen is the last contact since the writer started, zero for none.
	Seen   time.Time `json:"seen"`
	Live   bool      `json:"live"`
	Leased int64     `json:"leased"` // outstanding credits of this edge, in all epochs
	Stale  int64     `json:"stale"`  // of these, in epochs before the current one
}

// NewNode is an edge with a new token, which is shown only once.
type NewNode struct {
	Node
	Token string `json:"token"`
}

// UsageRow counts the requests of one key in one hour.
type UsageRow struct {
	Account  int64     `json:"account"`
	Key      int64     `json:"key"`
	Endpoint string    `json:"endpoint"`
	Outcome  string    `json:"outcome"`
	Hour     time.Time `json:"hour"`
	Count    int64     `json:"count"`
}

// UsageQuery selects usage. Zero fields select everything.
type UsageQuery struct {
	Account  int64
	From, To time.Time // whole hours, To excluded
}

// Unresolved is a charge whose verdict may never have reached the component.
type Unresolved struct {
	ID       string    `json:"id"` // request id
	Account  int64     `json:"account"`
	Key      int64     `json:"key"`
	Edge     string    `json:"edge"`
	At       time.Time `json:"at"`
	Credited bool      `json:"credited"`
}

// Health is the state of the writer.
type Health struct {
	Generation uint64 `json:"generation"`
	// Restoring says that the ledger was restored from a backup and that the edges in
	// Waiting still have to declare their leases; until then nothing is granted.
	Restoring bool      `json:"restoring"`
	Waiting   []string  `json:"waiting"`
	Live      int       `json:"live"` // edges in contact
	Now       time.Time `json:"now"`
}
