package wake

import "testing"

func TestADeliveryInHandEndsByWhatPisSessionShows(t *testing.T) {
	for told, event := range map[bool]string{true: "delivered news turn started", false: "released news"} {
		q := open(t)
		tr := newTranscript(t)
		d := hand(t, q, Recipient{Harness: "pi", Transcript: tr.path})
		if told {
			tr.told(d.Text)
		}
		if got, err := d.EndIfTold(); got != told || err != nil {
			t.Errorf("told %v: %v, %v", told, got, err)
		}
		if !told {
			if err := d.Release(t.Context(), ""); err != nil {
				t.Error(err)
			}
		}
		want(t, "last event", lastEvent(t, q), event)
	}
}
