package state

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vx/internal/lock"
)

func open(t *testing.T) *Dir {
	t.Helper()
	home(t)
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAProjectsDirectoryIsNamedAfterItsPath(t *testing.T) {
	d := open(t)
	seen := map[string]string{}
	for root, want := range map[string]string{
		"/home/u/shop":                        "shop-3060a1e0",
		"/home/v/shop":                        "shop-",
		"/home/u/my shop":                     "my-shop-",
		"/home/u/.dotfiles":                   "dotfiles-",
		"/home/u/Ünïcode":                     "-n-code-",
		"/":                                   "--",
		"/home/u/" + strings.Repeat("x", 200): strings.Repeat("x", 60) + "-",
		"/home/u/a\nb":                        "a-b-",
	} {
		p := d.Project(root)
		name := filepath.Base(p.Dir)
		if !strings.HasPrefix(name, want) || len(name) != len(strings.TrimRight(want, "0123456789abcdef"))+8 && name != want {
			t.Errorf("%q: %s, want %s and 8 hex digits", root, name, want)
		}
		if filepath.Dir(p.Dir) != d.Join("projects") || p.Root != root || p.State() != d || !strings.HasSuffix(name, "-"+p.ID()) {
			t.Errorf("%q: %+v", root, p)
		}
		if other, ok := seen[p.ID()]; ok {
			t.Errorf("%q and %q have the same id", root, other)
		}
		seen[p.ID()] = root
	}
}

func TestEnsureMakesAProjectAndKeepsWhatIsThere(t *testing.T) {
	d := open(t)
	p := d.Project("/home/u/shop")
	if c, err := p.Config(); err != nil || c != (Config{}) {
		t.Errorf("before: %+v, %v", c, err)
	}
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	until := time.Date(2126, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := p.Update(func(c *Config) { c.Await, c.MutedUntil = "always", until }); err != nil {
		t.Fatal(err)
	}
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	want := Config{Path: "/home/u/shop", Await: "always", MutedUntil: until}
	if c, err := p.Config(); err != nil || c != want || !c.Muted(until.Add(-1)) || c.Muted(until) {
		t.Errorf("%+v, %v, want %+v", c, err, want)
	}
	if got := tree(t, p.Dir); got != " drwx------\n/project.json -rw-------\n/project.lock -rw-------\n" {
		t.Errorf("made\n%s", got)
	}
}

// A script without vx makes the queue's directory itself, perhaps before vx ever ran there.
func TestAProjectDirectoryThatWasMadeByHandIsTakenOver(t *testing.T) {
	d := open(t)
	p := d.Project("/home/u/shop")
	mkdir(t, p.Join("wakes"), 0o755)
	write(t, p.Join("wakes", "m.json"), `{"title":"x"}`)
	all, bad := d.Projects()
	if len(all) != 0 || len(bad) != 1 || !strings.Contains(bad[0].Error(), filepath.Base(p.Dir)) {
		t.Errorf("projects %v, bad %v; want one whose path is not known", all, bad)
	}
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	if all, bad = d.Projects(); len(all) != 1 || all[0].Root != "/home/u/shop" || all[0].Dir != p.Dir || len(bad) != 0 {
		t.Errorf("projects %v, bad %v", all, bad)
	}
	if _, err := os.Stat(p.Join("wakes", "m.json")); err != nil {
		t.Error(err)
	}
	mkdir(t, p.Dir, 0o775)
	if err := p.Ensure(); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("group-writable: %v", err)
	}
}

func TestAProjectIsNotMixedUpWithAnother(t *testing.T) {
	d := open(t)
	p := d.Project("/home/u/shop")
	mkdir(t, p.Dir, 0o700)
	write(t, p.Join("project.json"), `{"path":"/home/u/store"}`)
	err := p.Ensure()
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Why, "/home/u/store") || !strings.Contains(e.Fix, "vx project move") {
		t.Errorf("%v", err)
	}
	if err := d.Project("/home/u/sh\xffop").Ensure(); err == nil {
		t.Error("a path that JSON cannot hold was taken")
	}
	write(t, p.Join("project.json"), `{"path":`)
	if err := p.Ensure(); err == nil || !strings.Contains(err.Error(), "project.json") {
		t.Errorf("unreadable: %v", err)
	}
	if data, err := os.ReadFile(p.Join("project.json")); string(data) != `{"path":` {
		t.Errorf("unreadable became %q, %v", data, err)
	}
}

func TestProjectsListsWhatItCanRead(t *testing.T) {
	d := open(t)
	good := d.Project("/home/u/shop")
	if err := good.Ensure(); err != nil {
		t.Fatal(err)
	}
	broken := d.Project("/home/u/broken")
	mkdir(t, broken.Dir, 0o700)
	write(t, broken.Join("project.json"), "{")
	mkdir(t, d.Join("projects", ".being-removed"), 0o700)
	write(t, d.Join("projects", "notes.txt"), "x")
	all, bad := d.Projects()
	if len(all) != 1 || all[0].Root != good.Root || all[0].Dir != good.Dir || all[0].State() != d {
		t.Errorf("projects %v", all)
	}
	if len(bad) != 1 || !strings.HasPrefix(bad[0].Error(), "project "+filepath.Base(broken.Dir)+": state: ") || strings.Contains(bad[0].Error(), "\n") {
		t.Errorf("bad %v", bad)
	}
	if err := os.RemoveAll(d.Join("projects")); err != nil {
		t.Fatal(err)
	}
	if all, bad := d.Projects(); len(all)+len(bad) != 0 {
		t.Errorf("without any: %v, %v", all, bad)
	}
}

func TestUpdatesAtOnceAreAllKept(t *testing.T) {
	d := open(t)
	p := d.Project("/home/u/shop")
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	const n = 20
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := p.Update(func(c *Config) { c.Await += "x" }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if c, err := p.Config(); err != nil || len(c.Await) != n {
		t.Errorf("%d updates of %d are left, %v", len(c.Await), n, err)
	}
}

func TestAnUpdateWaitsForTheLock(t *testing.T) {
	d := open(t)
	p := d.Project("/home/u/shop")
	if err := p.Ensure(); err != nil {
		t.Fatal(err)
	}
	held, err := lock.Try(p.Join("project.lock"))
	if err != nil {
		t.Fatal(err)
	}
	var changedWhileHeld bool
	freed := make(chan struct{})
	done := make(chan error)
	go func() {
		done <- p.Update(func(c *Config) {
			select {
			case <-freed:
			default:
				changedWhileHeld = true
			}
			c.Await = "always"
		})
	}()
	time.Sleep(20 * time.Millisecond) // gives a broken lock the time to show
	close(freed)
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || changedWhileHeld {
		t.Errorf("%v; changed while the lock was held: %v", err, changedWhileHeld)
	}
}

// A world of projects: a repository with packages in it, a linked worktree, a plain directory.
func TestResolveFindsTheProject(t *testing.T) {
	d := open(t)
	h := resolve(t, os.Getenv("HOME"))
	repo := mkdir(t, filepath.Join(h, "src", "shop"), 0o700)
	mkdir(t, filepath.Join(repo, ".git"), 0o700)
	mkdir(t, filepath.Join(repo, "services", "api", "handlers"), 0o700)
	mkdir(t, filepath.Join(repo, "services", "web"), 0o700)
	worktree := mkdir(t, filepath.Join(h, "src", "shop-fix"), 0o700)
	mkdir(t, filepath.Join(worktree, "cmd"), 0o700)
	write(t, filepath.Join(worktree, ".git"), "gitdir: "+filepath.Join(repo, ".git", "worktrees", "shop-fix")+"\n")
	nested := mkdir(t, filepath.Join(repo, "vendor", "lib"), 0o700)
	write(t, filepath.Join(nested, ".git"), "gitdir: ../../.git/modules/lib\n")
	plain := mkdir(t, filepath.Join(h, "notes", "2026"), 0o700)
	write(t, filepath.Join(repo, "README"), "x")

	check := func(what string, d *Dir, dir, root, git string) {
		t.Helper()
		gotRoot, gotGit, err := d.Resolve(dir)
		if gotRoot != root || gotGit != git || err != nil {
			t.Errorf("%s: root %q, git %q, %v; want %q, %q", what, gotRoot, gotGit, err, root, git)
		}
	}
	check("the git root", d, repo, repo, repo)
	check("below the git root", d, filepath.Join(repo, "services", "api", "handlers"), repo, repo)
	check("a linked worktree", d, filepath.Join(worktree, "cmd"), worktree, worktree)
	check("a repository in a repository", d, nested, nested, nested)
	check("outside any repository", d, plain, plain, "")
	check("without a state directory", nil, filepath.Join(repo, "services"), repo, repo)

	api := filepath.Join(repo, "services", "api")
	for _, known := range []string{api, repo, filepath.Join(h, "src"), filepath.Join(h, "notes")} {
		if err := d.Project(known).Ensure(); err != nil {
			t.Fatal(err)
		}
	}
	check("a known project in a repository", d, filepath.Join(api, "handlers"), api, repo)
	check("beside a known project", d, filepath.Join(repo, "services", "web"), repo, repo)
	check("below a known project, in a repository of its own", d, repo, repo, repo)
	check("a known project outside any repository", d, plain, filepath.Join(h, "notes"), "")
	check("the same without a state directory", nil, plain, plain, "")

	t.Chdir(api)
	check("a relative path", d, "handlers/..", api, repo)
	for _, bad := range []string{filepath.Join(h, "none"), filepath.Join(repo, "README")} {
		if root, _, err := d.Resolve(bad); err == nil {
			t.Errorf("%s: %s", bad, root)
		}
	}
}

// On macOS /var is a link to /private/var, and elsewhere a whole home may be reached through a link.
func TestPathsThroughLinksAreTheSameProject(t *testing.T) {
	root := resolve(t, t.TempDir())
	real := mkdir(t, filepath.Join(root, "private", "var", "u", "shop"), 0o700)
	mkdir(t, filepath.Join(real, ".git"), 0o700)
	link(t, "private/var", filepath.Join(root, "var"))
	link(t, filepath.Join(root, "var", "u"), filepath.Join(root, "home"))
	t.Setenv("HOME", filepath.Join(root, "home"))
	t.Setenv("VEXILLUM_HOME", "")
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, "private", "var", "u", ".vexillum"); d.Path() != want {
		t.Errorf("state at %s, want %s", d.Path(), want)
	}
	for _, path := range []string{filepath.Join(root, "home", "shop"), filepath.Join(root, "var", "u", "shop"), real} {
		if got, git, err := d.Resolve(path); got != real || git != real || err != nil {
			t.Errorf("%s: %s, %s, %v, want %s", path, got, git, err, real)
		}
	}
	camp := mkdir(t, d.Project(real).Join("camps", "m-1"), 0o700)
	write(t, filepath.Join(camp, ".git"), "gitdir: x\n")
	at := strings.Replace(camp, filepath.Join(root, "private", "var", "u"), filepath.Join(root, "home"), 1)
	if got, _, err := d.Resolve(at); got != camp || err != nil || !d.InCamp(got) {
		t.Errorf("%s: %s, %v; in a camp: %v", at, got, err, d.InCamp(got))
	}
}

func TestACampIsAWorktreeUnderTheStateDirectory(t *testing.T) {
	d := open(t)
	p := d.Project("/home/u/shop")
	for path, want := range map[string]bool{
		p.Join("camps", "m-1"):         true,
		p.Join("camps", "m-1", "cmd"):  true,
		p.Join("camps"):                false,
		p.Join("reports", "m-1"):       false,
		p.Dir:                          false,
		d.Path():                       false,
		d.Join("camps", "x", "y"):      false,
		"/home/u/shop":                 false,
		"/home/u/projects/a/camps/m-1": false,
		"/":                            false,
	} {
		if got := d.InCamp(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
