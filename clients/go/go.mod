module regedge/clients/go

go 1.22
