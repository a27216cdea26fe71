package vx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// anything is the rule of a program that stands around the others.
var anything = []string{"*"}

// leaves know nothing of wakes and hooks; every package may import them.
var leaves = []string{"internal/atomicfile", "internal/claude", "internal/lock", "internal/pi", "internal/proc", "internal/receipt", "internal/rest", "internal/state"}

// imports says which packages of the module each one may import besides the leaves. What is not here is not allowed:
// nothing upward, nothing sideways. docs/architecture.md has the picture.
var imports = map[string][]string{
	"cmd/vx": anything,
	"":       nil, // this test

	"install":         {"settings"},
	"hook":            {"internal/wake", "internal/awaiter", "internal/pace", "settings"},
	"settings":        nil,
	"internal/doctor": {"install", "hook", "internal/awaiter", "internal/camp", "internal/commander", "internal/daemon", "internal/herdr", "internal/pace", "internal/task", "internal/wake"},
	"internal/status": {"internal/awaiter", "internal/commander", "internal/loop", "internal/pace", "internal/task", "internal/wake", "hook"},
	"internal/run":    {"internal/wake"},
	"internal/demo":   {"settings"},
	"internal/wake":   {"internal/awaiter"},

	"internal/awaiter":    nil,
	"internal/camp":       nil,
	"internal/daemon":     nil,
	"internal/forum":      {"internal/wake"},
	"internal/herdr":      nil,
	"internal/loop":       {"internal/wake"},
	"internal/loop/green": {"internal/loop", "internal/wake"},
	"internal/loop/ralph": {"internal/loop", "internal/wake"},
	"internal/opencode":   nil,
	"internal/pace":       nil,
	"internal/route":      {"internal/awaiter", "internal/commander", "internal/herdr", "internal/opencode", "internal/pace", "internal/screen", "internal/wake"},
	"internal/screen":     nil,
	"internal/soldier":    {"internal/herdr", "internal/screen", "internal/task"},
	"internal/task":       {"internal/wake"},
	"internal/sentinel":   {"internal/awaiter", "internal/forum", "internal/herdr", "internal/route", "internal/soldier", "internal/task", "internal/wake"},

	"internal/commander": {"internal/awaiter", "internal/herdr"},
	"internal/dispatch":  {"internal/awaiter", "internal/camp", "internal/commander", "internal/herdr", "internal/screen", "internal/task", "internal/wake"},

	// Programs that look at vx from outside.
	"internal/bench":   anything,
	"internal/torture": anything,
	"internal/e2e":     anything,

	"internal/e2e/clients":  nil,
	"internal/e2e/openai":   nil,
	"internal/e2e/opencode": anything,
	"internal/e2e/pi":       anything,
	"internal/e2e/tmux":     nil,

	// A herdr for tests; no program that people run imports it.
	"internal/herdr/herdrtest":        nil,
	"internal/herdr/herdrtest/schema": nil,
}

// leafImports is what the leaves may import of the module: each other, in one direction.
var leafImports = map[string][]string{
	"internal/atomicfile": nil,
	"internal/lock":       nil,
	"internal/proc":       nil,
	"internal/rest":       nil,
	"internal/claude":     {"internal/proc", "internal/receipt"},
	"internal/pi":         {"internal/receipt"},
	"internal/receipt":    nil,
	"internal/state":      {"internal/atomicfile", "internal/lock"},
}

// listed is a package as `go list` has it.
type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func (p listed) name() string { return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, "vx"), "/") }

// packages are those of the module on one system, with the tests on the real client.
func packages(t *testing.T, goos string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "e2e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// forEachSystem runs the test with the module's packages on each system that vx runs on.
func forEachSystem(t *testing.T, test func(t *testing.T, all []listed)) {
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) { test(t, packages(t, goos)) })
	}
}

func TestPackagesImportOnlyWhatTheRuleAllows(t *testing.T) {
	forEachSystem(t, func(t *testing.T, all []listed) {
		for _, p := range all {
			allowed, known := imports[p.name()]
			allowed = append(slices.Clone(allowed), leaves...)
			if own, leaf := leafImports[p.name()]; leaf {
				allowed, known = own, true
			}
			if !known {
				t.Errorf("%s is not in the rule", p.ImportPath)
				continue
			}
			for _, path := range p.Imports {
				name, ours := strings.CutPrefix(path, "vx/")
				if ours && !slices.Contains(allowed, name) && !slices.Contains(allowed, "*") {
					t.Errorf("%s imports %s", p.ImportPath, path)
				}
			}
		}
	})
}

func TestTheRuleNamesNoPackageThatIsGone(t *testing.T) {
	there := map[string]bool{}
	for _, p := range packages(t, "linux") {
		there[p.name()] = true
	}
	for _, rule := range []map[string][]string{imports, leafImports} {
		for name := range rule {
			if !there[name] {
				t.Errorf("%s is in the rule and not in the module", name)
			}
		}
	}
}

// The hook runs at the end of every turn of every session, so it must not link what it does not need.
func TestTheHookIsLight(t *testing.T) {
	heavy := []string{"net", "net/http", "github.com/alecthomas/kong", "vx/install"}
	forEachSystem(t, func(t *testing.T, all []listed) {
		i := slices.IndexFunc(all, func(p listed) bool { return p.ImportPath == "vx/hook" })
		if i < 0 {
			t.Fatal("vx/hook is not in the module")
		}
		for _, path := range heavy {
			if slices.Contains(all[i].Deps, path) {
				t.Errorf("vx/hook depends on %s", path)
			}
		}
	})
}

// All of vx is one program, and so what it links is paid for by each hook that ends at once (0.6 ms for net/http) and by each
// await that waits (150 KB).
func TestTheProgramLinksNoNetworkOfGos(t *testing.T) {
	forEachSystem(t, func(t *testing.T, all []listed) {
		i := slices.IndexFunc(all, func(p listed) bool { return p.ImportPath == "vx/cmd/vx" })
		if i < 0 {
			t.Fatal("vx/cmd/vx is not in the module")
		}
		for _, path := range []string{"net", "net/http", "crypto/tls"} {
			if slices.Contains(all[i].Deps, path) {
				t.Errorf("vx/cmd/vx depends on %s", path)
			}
		}
	})
}

// What stands in for a program, and what only tests need to judge it, is not in vx.
func TestTheProgramLinksNoFake(t *testing.T) {
	forEachSystem(t, func(t *testing.T, all []listed) {
		i := slices.IndexFunc(all, func(p listed) bool { return p.ImportPath == "vx/cmd/vx" })
		if i < 0 {
			t.Fatal("vx/cmd/vx is not in the module")
		}
		for _, path := range all[i].Deps {
			if strings.Contains(path, "/herdrtest") || strings.Contains(path, "jsonschema") {
				t.Errorf("vx/cmd/vx depends on %s", path)
			}
		}
	})
}

// settings is bytes to bytes: whoever reads it can be sure that it harms no file.
func TestSettingsTouchesNoFiles(t *testing.T) {
	forEachSystem(t, func(t *testing.T, all []listed) {
		i := slices.IndexFunc(all, func(p listed) bool { return p.ImportPath == "vx/settings" })
		if i < 0 {
			t.Fatal("vx/settings is not in the module")
		}
		for _, path := range all[i].Imports {
			if path == "os" || path == "io/fs" || path == "syscall" || strings.HasPrefix(path, "vx/") {
				t.Errorf("vx/settings imports %s", path)
			}
		}
	})
}
