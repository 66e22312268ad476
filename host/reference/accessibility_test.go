package reference_test

import (
	"testing"

	"regedge/internal/testkit/browser"
)

func TestEveryPageIsAccessible(t *testing.T) {
	axe := browser.Axe(t)
	base := service(t)
	p := newTab(t)
	for _, v := range browser.Views {
		p.As(v)
		for _, path := range pagePaths {
			p.open(base + path)
			p.RequireAccessible(axe, v.Name+" "+path)
		}
		p.openRecord(base)
		p.RequireAccessible(axe, v.Name+" a record")
		p.openOperation(base)
		p.RequireAccessible(axe, v.Name+" a call in the reference")
		p.Click(".btn.authorize")
		p.WaitFor(`document.querySelector(".modal-ux")`)
		p.RequireAccessible(axe, v.Name+" the key in the reference")
	}
	p.RequireClean(base)
}
