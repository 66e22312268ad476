// Package notice tells the owners of an account what they should know of: few credits left, 80 % of the
// month's calls used, a key at its not-found cap or without credits for the rest of its month, a key that ends
// soon.
//
// A target is where notices go: the webhook of an account, or the mail of a person. A notice is a row of the
// ledger from the moment it is found until well after it was delivered, so a restart loses none. The carrier
// of its target tries until it is delivered, with growing pauses, for about two days: at least once, under an
// id by which a receiver knows it again.
//
// Packages webhook and mail are the carriers.
package notice
