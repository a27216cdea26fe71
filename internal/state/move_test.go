package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// known makes a project that the state directory knows, with something in it.
func known(t *testing.T, d *Dir, root string) *Project {
	t.Helper()
	p := d.Project(root)
	if err := errors.Join(p.Ensure(), os.WriteFile(p.Join("history.jsonl"), []byte("x\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return p
}

func scratch(t *testing.T) *Dir {
	t.Helper()
	d, err := OpenAt(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAProjectThatIsGoneIsFoundByItsOldName(t *testing.T) {
	d, home := scratch(t), t.TempDir()
	real, err := filepath.EvalSymlinks(home)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	known(t, d, filepath.Join(real, "deep/shop"))
	for _, path := range []string{filepath.Join(real, "deep/shop"), filepath.Join(link, "deep/shop") + "/", filepath.Join(link, "deep/../deep/shop")} {
		p, err := d.Find(path)
		if err != nil || !p.Gone() {
			t.Errorf("Find(%q): %v, %v", path, p, err)
		}
	}
	var e *Unknown
	if _, err := d.Find(real); !errors.As(err, &e) || e.Path != real {
		t.Errorf("Find of a directory without state: %v", err)
	}
}

func TestAProjectThatStandsIsNotGone(t *testing.T) {
	d, root := scratch(t), t.TempDir()
	if known(t, d, root).Gone() {
		t.Error("a directory that stands is gone")
	}
	// A parent that cannot be entered proves nothing. (A superuser enters everything.)
	shut := filepath.Join(root, "shut")
	p := known(t, d, filepath.Join(shut, "shop"))
	if err := os.Mkdir(shut, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 && p.Gone() {
		t.Error("what cannot be looked at is gone")
	}
}

func TestRenameKeepsWhatAProjectHas(t *testing.T) {
	d := scratch(t)
	p := known(t, d, "/home/u/shop")
	if err := os.WriteFile(p.Join("project.json"), []byte(`{"path":"/home/u/shop","await":"always","later":[1]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := p.Rename("/home/u/store")
	if err != nil {
		t.Fatal(err)
	}
	c, err := to.Config()
	if err != nil || c.Path != "/home/u/store" || c.Await != "always" {
		t.Errorf("config: %+v, %v", c, err)
	}
	data, err := os.ReadFile(to.Join("project.json"))
	if err != nil || !filepath.IsAbs(to.Dir) || to.Dir != d.Project("/home/u/store").Dir {
		t.Errorf("%s: %v", to.Dir, err)
	}
	if want := "{\n  \"await\": \"always\",\n  \"later\": [\n    1\n  ],\n  \"path\": \"/home/u/store\"\n}\n"; string(data) != want {
		t.Errorf("project.json is %s", data)
	}
	if _, err := os.Stat(to.Join("history.jsonl")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old directory: %v", err)
	}
}

func TestRenameDoesNotTouchAProjectThatHasState(t *testing.T) {
	d := scratch(t)
	p, other := known(t, d, "/home/u/shop"), known(t, d, "/home/u/store")
	if _, err := p.Rename("/home/u/store"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	for _, p := range []*Project{p, other} {
		if c, err := p.Config(); err != nil || c.Path != p.Root {
			t.Errorf("%s: %+v, %v", p.Root, c, err)
		}
	}
}

func TestARenameThatWasInterruptedIsRefusedUntilItIsCompleted(t *testing.T) {
	d := scratch(t)
	p := known(t, d, "/home/u/shop")
	to := d.Project("/home/u/store")
	if err := os.Rename(p.Dir, to.Dir); err != nil { // and then it crashed
		t.Fatal(err)
	}
	var e *Error
	if err := to.Ensure(); !errors.As(err, &e) || e.Fix != "vx project move /home/u/shop /home/u/store" {
		t.Fatalf("Ensure: %v", err)
	}
	again, err := d.Find("/home/u/shop")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Rename("/home/u/store"); err != nil {
		t.Fatal(err)
	}
	if err := to.Ensure(); err != nil {
		t.Error(err)
	}
}

func TestAScratchStateDirectoryNeedsNoEnvironment(t *testing.T) {
	t.Setenv("VEXILLUM_HOME", "relative")
	t.Setenv("HOME", "")
	d := scratch(t)
	if again, err := LookAt(d.Path()); err != nil || again.Path() != d.Path() {
		t.Errorf("LookAt: %v, %v", again, err)
	}
	if _, err := LookAt(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("LookAt of nothing: %v", err)
	}
}

func TestAdoptFillsInWhatWasNotChosen(t *testing.T) {
	d := scratch(t)
	old, now := known(t, d, "/home/u/shop"), known(t, d, "/home/u/store")
	for p, config := range map[*Project]string{
		old: `{"path":"/home/u/shop","await":"always","later":{"a":1},"both":1}`,
		now: `{"path":"/home/u/store","both":2,"muted_until":"2126-01-01T00:00:00Z"}`,
	} {
		if err := os.WriteFile(p.Join("project.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := now.Adopt(old); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(now.Join("project.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "await": "always",
  "both": 2,
  "later": {
    "a": 1
  },
  "muted_until": "2126-01-01T00:00:00Z",
  "path": "/home/u/store"
}
`
	if string(data) != want {
		t.Errorf("project.json is %s", data)
	}
}

func TestAnUpdateKeepsWhatItDoesNotKnowAndRefusesWhatItCannotRead(t *testing.T) {
	d := scratch(t)
	p := known(t, d, "/home/u/shop")
	if err := os.WriteFile(p.Join("project.json"), []byte(`{"path":"/home/u/shop","later":12345678901234567890}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Update(func(c *Config) { c.Await = "always" }); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(p.Join("project.json"))
	if want := "{\n  \"await\": \"always\",\n  \"later\": 12345678901234567890,\n  \"path\": \"/home/u/shop\"\n}\n"; string(data) != want {
		t.Errorf("project.json is %s", data)
	}
	for _, broken := range []string{"{", `{"await":7}`} {
		if err := os.WriteFile(p.Join("project.json"), []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Update(func(c *Config) {}); err == nil {
			t.Errorf("%s was updated", broken)
		}
		if data, _ := os.ReadFile(p.Join("project.json")); string(data) != broken {
			t.Errorf("%s became %s", broken, data)
		}
	}
}
