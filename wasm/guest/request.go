package main

import (
	"strings"

	"regedge/handler"
	"regedge/wasm/bindings/wasi/http/types"
	"regedge/wasm/labels"
)

// methods are the names of the cases of wasi:http's variant method, in the order of its tags.
var methods = [...]string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// receive reads the parts of a request that the handler uses.
func receive(request types.IncomingRequest) *handler.Request {
	fields := request.Headers()
	path := request.PathWithQuery()
	return &handler.Request{
		Method:     method(request.Method()),
		Target:     path.Value(),
		Headers:    append(headers(fields, "authorization"), headers(fields, "idempotency-key")...),
		ClientAddr: func() string { return clientAddr(values(fields, labels.ClientAddrHeader)) },
	}
}

func method(m types.Method) string {
	if other := m.Other(); other != nil {
		return *other
	}
	return methods[m.Tag()]
}

// headers returns the fields of a name, in order, sharing their memory.
func headers(fields types.Fields, name string) []handler.Header {
	list := fields.Get(types.FieldKey(name)).Slice()
	headers := make([]handler.Header, len(list))
	for i := range list {
		headers[i] = handler.Header{Name: name, Value: fieldText(list[i])}
	}
	return headers
}

// values returns the values of a header, in order, sharing their memory.
func values(fields types.Fields, name string) []string {
	list := fields.Get(types.FieldKey(name)).Slice()
	if len(list) == 0 {
		return nil
	}
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = fieldText(list[i])
	}
	return texts
}

// clientAddr returns the address in the last value of ClientAddrHeader: IPv4 or IPv6, with a port
// (a.b.c.d:p, [v6]:p) or without. The zone of IPv6 is dropped, as the native host does.
func clientAddr(values []string) string {
	if len(values) == 0 {
		return ""
	}
	addr := values[len(values)-1]
	if strings.HasPrefix(addr, "[") {
		addr, _, _ = strings.Cut(addr[1:], "]")
	} else if strings.Count(addr, ":") == 1 {
		addr, _, _ = strings.Cut(addr, ":")
	}
	addr, _, _ = strings.Cut(addr, "%")
	return addr
}
