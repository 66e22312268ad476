package dashboard

import (
	"image/color"
	"regexp"
	"strconv"
	"testing"

	"github.com/boombuler/barcode/qr"
	"github.com/stretchr/testify/require"
)

// TestAQRCodeIsDrawnModuleByModule, with a margin of four: an app reads no other.
func TestAQRCodeIsDrawnModuleByModule(t *testing.T) {
	const text = "otpauth://totp/regedge:owner@example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=regedge"
	drawn, err := newQRCode(text)
	require.NoError(t, err)
	want, err := qr.Encode(text, qr.M, qr.Auto)
	require.NoError(t, err)
	require.Equal(t, want.Bounds().Dx()+8, drawn.Size)
	type module struct{ x, y int }
	dark := map[module]bool{}
	runs := regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`)
	require.Empty(t, runs.ReplaceAllString(drawn.Path, ""))
	for _, run := range runs.FindAllStringSubmatch(drawn.Path, -1) {
		var n [4]int
		for i := range n {
			n[i], err = strconv.Atoi(run[i+1])
			require.NoError(t, err)
		}
		require.Equal(t, n[2], n[3], "it comes back")
		for x := range n[2] {
			dark[module{n[0] + x, n[1]}] = true
		}
	}
	for y := range drawn.Size {
		for x := range drawn.Size {
			inside := x >= 4 && y >= 4 && x < drawn.Size-4 && y < drawn.Size-4
			require.Equal(t, inside && want.At(x-4, y-4) == color.Black, dark[module{x, y}], "%d, %d", x, y)
		}
	}
}
