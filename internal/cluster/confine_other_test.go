//go:build !linux

package cluster_test

func becomeConfined() {}
