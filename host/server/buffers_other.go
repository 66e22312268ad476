//go:build !linux

package server

import "net"

func boundBuffers(net.Conn) {}
