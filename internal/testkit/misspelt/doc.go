// Package misspelt makes queries from registered names by the mistakes that people make: typos, and
// other spellings of Indian names.
package misspelt
