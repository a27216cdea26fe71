//go:build amd64 || arm64

package wake

import (
	"errors"
	"os"
	"testing"

	"vx/internal/rest"
)

func TestAQueueIsQuietUntilSomethingWaitsOrIsOutstanding(t *testing.T) {
	q := open(t)
	quiet := func() bool {
		w := rest.Wait{Parent: os.Getppid(), Places: q.Quiet()}
		return w.Quiet()
	}
	if err := q.Prepare(); err != nil {
		t.Fatal(err)
	}
	want(t, "quiet with what is prepared", quiet(), true)
	put(t, q, Wake{Title: "first"})
	want(t, "quiet with a wake", quiet(), false)
	d := claim(t, q)
	want(t, "quiet with a delivery", quiet(), false)
	if err := errors.Join(d.Note(Recipient{Harness: "pi"}), d.Emit(), d.Close()); err != nil {
		t.Fatal(err)
	}
	want(t, "quiet with a receipt outstanding", quiet(), false)
	if err := q.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "quiet again", quiet(), true)
}
