package ralph

import (
	"os"
	"path/filepath"
	"testing"
)

func TestALogThatIsTooLargeIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "iter-001.log")
	open := func() (*os.File, error) { return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) }
	file, err := open()
	if err != nil {
		t.Fatal(err)
	}
	o := &output{file: file, open: open, most: 10}
	defer func() { o.file.Close() }()
	for _, text := range []string{"first promi", "se=COMP", "LETE\n"} {
		if o.promised {
			t.Errorf("promised before %q", text)
		}
		if _, err := o.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if !o.promised {
		t.Error("a promise in pieces was not seen")
	}
	for name, want := range map[string]string{path: "LETE\n", path + ".1": "se=COMP"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestASelectionIsReadOrRefused(t *testing.T) {
	for text, want := range map[string]selection{
		"":                             {Status: "none"},
		" none\n":                      {Status: "none", text: "none"},
		"a b\n":                        {Status: "work", Task: "a b", text: "a b"},
		`{"status":"none"}`:            {Status: "none", text: `{"status":"none"}`},
		`{"status":"plan","spec":"s"}`: {Status: "plan", Spec: "s", text: `{"status":"plan","spec":"s"}`},
		`{"status":"work","spec":null,"task":"t"}`: {Status: "work", Task: "t", text: `{"status":"work","spec":null,"task":"t"}`},
	} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a\nb", "{", `{}`, `{"status":"work"}`, "a\x1b[2Jb", "a\x00b", `{"status":"work","task":"a\nb"}`} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
