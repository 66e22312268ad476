// Package ident validates and formats the identifiers of the service: the CIN, DIN and LLPIN
// of the registry's records, and API keys (docs/contract.md, "Parameters" and
// "Authentication"). The component, the importer, the writer and the edge share it, so it
// imports nothing but package fastbytes and the standard library's strings.
package ident
