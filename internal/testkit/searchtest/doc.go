// Package searchtest makes registry databases with names in them, for tests of the name search.
package searchtest
