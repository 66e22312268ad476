package dashboard

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quietZone is the margin that ISO/IEC 18004 wants around a QR code, in modules.
const quietZone = 4

// qrCode is a QR code as inline SVG: the pages' policy allows no data: URL, and a separate image would have
// the secret in its address.
type qrCode struct {
	Size int    // width and height, in modules
	Path string // of the dark modules
}

func newQRCode(text string) (qrCode, error) {
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return qrCode{}, fmt.Errorf("make QR code: %w", err)
	}
	side := code.Bounds().Dx()
	dark := func(x, y int) bool { return x < side && color.GrayModel.Convert(code.At(x, y)).(color.Gray).Y < 128 }
	var path strings.Builder
	for y := range side {
		for x := 0; x < side; x++ {
			begin := x
			for dark(x, y) {
				x++
			}
			if x > begin {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", begin+quietZone, y+quietZone, x-begin, x-begin)
			}
		}
	}
	return qrCode{side + 2*quietZone, path.String()}, nil
}
