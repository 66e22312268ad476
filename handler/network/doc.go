// Package network says whether a client's address is in a list of networks. It does without package net,
// which the component can't carry.
package network
