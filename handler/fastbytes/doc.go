// Package fastbytes reads, copies and compares ASCII text eight bytes at a time ("SIMD within
// a register", SWAR), and has the one definition of ASCII case for the service.
//
// It exists for the component: TinyGo checks the bounds of each byte of a slice and loads it
// by itself, which takes longer than all the work on eight of them together.
package fastbytes
