package conformance

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"regedge/handler"
)

// occupied is an answerer whose first request is under way until the test ends.
type occupied struct{ begun, end chan struct{} }

func (o *occupied) Answer(context.Context, *handler.Request, *handler.Response) error {
	close(o.begun) // a second request that came this far would panic
	<-o.end
	return errors.New("not to be seen")
}

// fill sends the first request and returns when it is being answered.
func (o *occupied) fill(t *testing.T, base string) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := http.Get(base + "/v1/companies/first"); err == nil {
			res.Body.Close()
		}
	}()
	<-o.begun
	t.Cleanup(func() {
		close(o.end)
		<-ended
	})
}
