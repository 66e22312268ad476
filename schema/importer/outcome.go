package importer

// rejection is the error by which a parser refuses a row.
type rejection struct{ reason, detail string }

func (r *rejection) Error() string {
	if r.detail == "" {
		return r.reason
	}
	return r.reason + ": " + r.detail
}

// omission is the error by which a parser leaves out a row that is none of the service's.
type omission struct{ reason string }

func (o *omission) Error() string { return o.reason }
