package awaiter

import "testing"

func TestAnAwaiterIsResumedWithItsOwnDescriptorsAlone(t *testing.T) {
	dir := open(t)
	a, other := register(t, dir, "/p", 1), register(t, dir, "/p", 2)
	k := a.Kept()
	for what, wrong := range map[string]Kept{
		"another's lock":     {k.Base, other.Kept().Lock, k.Bell},
		"another's doorbell": {k.Base, k.Lock, other.Kept().Bell},
		"another's files":    {other.Kept().Base, k.Lock, k.Bell},
		"nothing":            {k.Base, -1, -1},
	} {
		if _, err := Resume(a.project, wrong); err == nil {
			t.Errorf("resumed with %s", what)
		}
	}
	Ring(dir, a.project)
	Ring(dir, a.project) // one for each: which comes first is a matter of their names
	b, err := Resume(a.project, k)
	if err != nil {
		t.Fatal(err)
	}
	if !rings(b) {
		t.Error("what rang before it was resumed is lost")
	}
	b.Answer()
	if Ring(dir, a.project); !rings(b) {
		t.Error("it is not rung")
	}
	if !held(k.Base + ".lock") {
		t.Error("its lock is not held")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if held(k.Base+".lock") || exists(k.Record()) {
		t.Error("something is left of it")
	}
	a.lock, a.bell = -1, -1
}
