package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var screens = flag.String("screens", "", "directory into which pictures of every page are written, for people to look at")

// NeedScreens skips a test that takes pictures when none are asked for.
func NeedScreens(t *testing.T) {
	t.Helper()
	if *screens == "" {
		t.Skip("no pictures asked for: -screens DIR takes them")
	}
	require.NoError(t, os.MkdirAll(*screens, 0o755))
}

// Picture takes a picture of the whole page. Nothing is compared.
func (p *Tab) Picture(name string, v View) {
	p.T.Helper()
	png, err := chromedp.Run(p, chromedp.FullScreenshot(100))
	require.NoError(p.T, err)
	require.NoError(p.T, os.WriteFile(filepath.Join(*screens, name+"-"+v.Name+".png"), png, 0o644))
}
