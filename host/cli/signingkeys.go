package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"regedge/host/hint"
	"regedge/host/pki"
)

// trustHome is where the guide keeps the trust directory.
const trustHome = "/etc/regedge/trust"

// refuseSigningKeys returns an error when this process can read a key that signs tokens or
// certificates: in the trust directory's place, or beside one of the files that it was given. Whoever
// takes over a service that the network reaches must not be able to make tokens that write.
func refuseSigningKeys(files ...string) error {
	dirs := []string{trustHome}
	for _, file := range files {
		if file != "" {
			dirs = append(dirs, filepath.Dir(file))
		}
	}
	for _, dir := range dirs {
		for _, name := range pki.SigningKeys {
			path := filepath.Join(dir, name)
			file, err := os.Open(path)
			if err != nil {
				continue
			}
			file.Close()
			return hint.With(fmt.Errorf("this service could read %s, which signs tokens or certificates", path),
				"run it as a user of its own, keep that file readable by root alone, and copy what the service needs to another directory")
		}
	}
	return nil
}
