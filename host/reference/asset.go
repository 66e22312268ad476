package reference

import (
	"embed"
	"fmt"
	"path"

	"regedge/web"
)

//go:embed assets
var assetFiles embed.FS

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
}

// loadAssets reads the files of the pages and adds those that all pages share.
func loadAssets() (map[string]web.Asset, error) {
	assets := web.Common()
	assets["samples.json"] = web.NewAsset("application/json", samplesJSON())
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		contentType, ok := contentTypes[path.Ext(entry.Name())]
		if !ok {
			return nil, fmt.Errorf("%s has no known content type", entry.Name())
		}
		body, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, err
		}
		assets[entry.Name()] = web.NewAsset(contentType, body)
	}
	return assets, nil
}
