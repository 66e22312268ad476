package writer

import (
	_ "embed"
	"net/http"

	"github.com/julienschmidt/httprouter"
)

// document is the OpenAPI document of the writer's API.
//
//go:embed openapi.yaml
var document []byte

// DocumentPath is where the writer serves its OpenAPI document.
const DocumentPath = "/v1/openapi.yaml"

// Document returns the OpenAPI document of the operators' API, in YAML. It must not be changed.
func Document() []byte { return document }

func serveDocument(rw http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	rw.Header().Set("Content-Type", "application/yaml")
	rw.Write(document)
}
