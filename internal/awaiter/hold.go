package awaiter

import (
	"fmt"
	"os"
	"time"
)

// holdFile ends the name of the file that says that an awaiter holds a delivery in hand: its client has the text and has
// not said yet what becomes of it. Since when is the file's modification time.
const holdFile = ".hold"

// Hold says to others that the awaiter holds a delivery in hand, or that it does so no more.
func (a *Awaiter) Hold(on bool) error {
	var err error
	if on {
		err = os.WriteFile(a.base+holdFile, nil, 0o600)
	} else {
		err = remove(a.base + holdFile)
	}
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	return nil
}

// Holding reports whether the awaiter holds a delivery in hand now, and since when. One that does is not to be replaced or
// told to leave: it ends by itself when the client has said what becomes of the delivery.
func (e Entry) Holding() (since time.Time, holding bool) {
	fi, err := os.Lstat(e.base + holdFile)
	if err != nil || !e.Live() {
		return time.Time{}, false
	}
	return fi.ModTime(), true
}
