// Package vx_test holds what is true of the project as a whole: who may import whom, and that install.sh does what the
// first line of the README's five minutes promises.
package vx_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A vx that runs on every processor, so that an archive for any of them can be tried here.
const (
	newVX = "#!/bin/sh\n[ \"$1\" = version ] && echo 'vx v9.8.7'\n"
	oldVX = "#!/bin/sh\necho the old one\n"
)

// releaseArchive is what install.sh asks for on this machine.
var releaseArchive = "vx_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"

// installation is one run of install.sh: a HOME of its own, a PATH with chosen tools, a release on loopback.
type installation struct {
	t       *testing.T
	shell   string
	home    string
	tools   string
	release map[string][]byte // name -> content
	asked   []string          // what the script asked the server for
	env     []string
	args    []string
	path    string // in front of tools
}

// newInstallation makes a whole and good release; tools are the programs that differ between machines.
func newInstallation(t *testing.T, shell string, tools ...string) *installation {
	t.Helper()
	in := &installation{t: t, shell: program(t, shell), home: t.TempDir(), tools: t.TempDir()}
	common := []string{"awk", "cat", "chmod", "cp", "gzip", "mkdir", "mktemp", "mv", "rm", "sh", "tar", "uname"}
	for _, name := range append(common, tools...) {
		if err := os.Symlink(program(t, name), filepath.Join(in.tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	in.offer(releaseArchive, archiveOf(t, &tar.Header{Name: "vx", Mode: 0o755}, newVX))
	return in
}

func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not on this machine", name)
	}
	return path
}

// offer puts an archive into the release, with its right checksum behind another file's.
func (in *installation) offer(name string, content []byte) {
	sums := fmt.Sprintf("%064x  %s.sbom\n%x  %s\n", 0, name, sha256.Sum256(content), name)
	in.release = map[string][]byte{name: content, "checksums.txt": []byte(sums)}
}

func archiveOf(t *testing.T, header *tar.Header, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	header.Size = int64(len(content))
	if err := w.WriteHeader(header); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (in *installation) bin(elem ...string) string {
	return filepath.Join(append([]string{in.home, ".local", "bin"}, elem...)...)
}

// haveOld puts an older vx in its place.
func (in *installation) haveOld() {
	in.t.Helper()
	if err := os.MkdirAll(in.bin(), 0o755); err != nil {
		in.t.Fatal(err)
	}
	if err := os.WriteFile(in.bin("vx"), []byte(oldVX), 0o755); err != nil {
		in.t.Fatal(err)
	}
}

// run runs install.sh against the release, and checks that it left no temporary file anywhere.
func (in *installation) run() (output string, status int) {
	in.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/release/")
		in.asked = append(in.asked, name)
		content, ok := in.release[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(content)
	}))
	defer server.Close()
	env := in.env
	if env == nil && in.args == nil {
		env = []string{"VX_INSTALL_URL=" + server.URL + "/release/"}
	}
	tmp := in.t.TempDir()
	cmd := exec.Command(in.shell, append([]string{"install.sh"}, in.args...)...)
	cmd.Env = append([]string{"HOME=" + in.home, "TMPDIR=" + tmp, "PATH=" + in.path + in.tools}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		in.t.Fatal(err)
	}
	if left := names(in.t, tmp); len(left) > 0 {
		in.t.Errorf("left in TMPDIR: %q", left)
	}
	for _, name := range names(in.t, in.bin()) {
		if name != "vx" {
			in.t.Errorf("left in ~/.local/bin: %q", name)
		}
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func (in *installation) wantInstalled(want string) {
	in.t.Helper()
	got, err := os.ReadFile(in.bin("vx"))
	if err != nil {
		in.t.Fatal(err)
	}
	if string(got) != want {
		in.t.Errorf("~/.local/bin/vx is %q, want %q", got, want)
	}
}

func wantStatus(t *testing.T, output string, got, want int) {
	t.Helper()
	if got != want {
		t.Fatalf("install.sh ended with %d, want %d:\n%s", got, want, output)
	}
}

func wantOutput(t *testing.T, output, want string) {
	t.Helper()
	if !strings.Contains(output, want) {
		t.Errorf("install.sh did not say %q:\n%s", want, output)
	}
}

var shells = []string{"dash", "bash"}

func TestInstallerWorksWithTheToolsThatAMachineHas(t *testing.T) {
	for _, shell := range shells {
		for _, fetcher := range []string{"curl", "wget"} {
			for _, summer := range []string{"sha256sum", "shasum"} {
				t.Run(shell+" "+fetcher+" "+summer, func(t *testing.T) {
					tools := []string{fetcher, summer}
					if summer == "shasum" {
						tools = append(tools, "perl")
					}
					in := newInstallation(t, shell, tools...)
					out, status := in.run()
					wantStatus(t, out, status, 0)
					in.wantInstalled(newVX)
					wantOutput(t, out, "vx v9.8.7 is in "+in.bin())
					if fi, err := os.Stat(in.bin("vx")); err != nil || fi.Mode() != 0o755 {
						t.Errorf("~/.local/bin/vx: mode %v (%v), want 0755", fi.Mode(), err)
					}

					in = newInstallation(t, shell, tools...)
					in.haveOld()
					in.release[releaseArchive][20] ^= 1
					out, status = in.run()
					wantStatus(t, out, status, 1)
					in.wantInstalled(oldVX)
					wantOutput(t, out, "SHA-256")
				})
			}
		}
	}
}

func TestInstallerTellsWhetherTheShellFindsVX(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			in := newInstallation(t, shell, "curl", "sha256sum")
			out, status := in.run()
			wantStatus(t, out, status, 0)
			wantOutput(t, out, in.bin()+" is not on your PATH")
			wantOutput(t, out, "The Stop hook finds vx there all the same")

			in.path = in.bin() + ":"
			out, status = in.run()
			wantStatus(t, out, status, 0)
			if strings.Contains(out, "PATH") {
				t.Errorf("~/.local/bin is on PATH, and the script said:\n%s", out)
			}

			other := t.TempDir()
			if err := os.WriteFile(filepath.Join(other, "vx"), []byte(oldVX), 0o755); err != nil {
				t.Fatal(err)
			}
			in.path = other + ":" + in.bin() + ":"
			out, status = in.run()
			wantStatus(t, out, status, 0)
			wantOutput(t, out, "another vx comes first on your PATH: "+filepath.Join(other, "vx"))
		})
	}
}

func TestInstallerReplacesByRename(t *testing.T) {
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			in := newInstallation(t, shell, "curl", "sha256sum")
			in.haveOld()
			running, err := os.Open(in.bin("vx"))
			if err != nil {
				t.Fatal(err)
			}
			defer running.Close()
			out, status := in.run()
			wantStatus(t, out, status, 0)
			in.wantInstalled(newVX)
			kept := make([]byte, len(oldVX))
			if _, err := running.ReadAt(kept, 0); err != nil || string(kept) != oldVX {
				t.Errorf("the old file was written over: %q (%v)", kept, err)
			}
		})
	}
}

func TestInstallerLeavesTheOldOneOnAnyFailure(t *testing.T) {
	cases := []struct {
		name  string
		spoil func(in *installation)
		says  string
	}{
		{"no checksums", func(in *installation) { delete(in.release, "checksums.txt") }, "checksums.txt: not downloaded"},
		{"no archive", func(in *installation) { delete(in.release, releaseArchive) }, releaseArchive + ": not downloaded"},
		{"a checksum of something else", func(in *installation) {
			in.release["checksums.txt"] = fmt.Appendf(nil, "%x  not-%s\n", sha256.Sum256(in.release[releaseArchive]), releaseArchive)
		}, "does not name " + releaseArchive},
		{"empty checksums", func(in *installation) { in.release["checksums.txt"] = nil }, "does not name"},
		{"half an archive", func(in *installation) {
			in.offer(releaseArchive, in.release[releaseArchive][:60])
		}, "holds no vx"},
		{"an archive of something else", func(in *installation) {
			in.offer(releaseArchive, archiveOf(in.t, &tar.Header{Name: "README.md", Mode: 0o644}, "vx"))
		}, "holds no vx"},
		{"a link for a vx", func(in *installation) {
			in.offer(releaseArchive, archiveOf(in.t, &tar.Header{Name: "vx", Typeflag: tar.TypeSymlink, Linkname: "/bin/sh"}, ""))
		}, "is not a file"},
		{"a vx that does not run", func(in *installation) {
			in.offer(releaseArchive, archiveOf(in.t, &tar.Header{Name: "vx", Mode: 0o755}, "#!/bin/sh\nexit 1\n"))
		}, "does not run here"},
		{"no checksum program", func(in *installation) { os.Remove(filepath.Join(in.tools, "sha256sum")) }, "neither found"},
		{"nothing to download with", func(in *installation) { os.Remove(filepath.Join(in.tools, "curl")) }, "neither found"},
		{"no release to take", func(in *installation) { in.env = []string{"VX_INSTALL_URL="} }, "VX_INSTALL_URL is not set"},
		{"an open line", func(in *installation) { in.args = []string{"--url", "http://example.invalid/"} }, "not an https:// URL"},
		{"an open line behind a name", func(in *installation) {
			in.args = []string{"--url=http://127.0.0.1:80@example.invalid/"}
		}, "not a plain URL"},
		{"no HOME", func(in *installation) { in.env = []string{"HOME=", "VX_INSTALL_URL=https://example.invalid/"} }, "HOME is not set"},
	}
	for _, shell := range shells {
		for _, c := range cases {
			t.Run(shell+" "+c.name, func(t *testing.T) {
				in := newInstallation(t, shell, "curl", "sha256sum")
				in.haveOld()
				c.spoil(in)
				out, status := in.run()
				wantStatus(t, out, status, 1)
				wantOutput(t, out, c.says)
				in.wantInstalled(oldVX)
			})
		}
	}
}

func TestInstallerDoesNotMoveVXIntoADirectoryOfThatName(t *testing.T) {
	in := newInstallation(t, "dash", "curl", "sha256sum")
	if err := os.MkdirAll(in.bin("vx", "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, status := in.run()
	wantStatus(t, out, status, 1)
	wantOutput(t, out, "is a directory")
	if got := names(t, in.bin("vx")); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("the directory holds %q now", got)
	}
}

func TestInstallerTakesTheArchiveOfTheSystemAndProcessor(t *testing.T) {
	for uname, want := range map[string]string{
		"Linux x86_64":  "vx_linux_amd64.tar.gz",
		"Linux aarch64": "vx_linux_arm64.tar.gz",
		"Darwin arm64":  "vx_darwin_arm64.tar.gz",
		"Darwin x86_64": "vx_darwin_amd64.tar.gz",
		"Linux riscv64": "",
		"MINGW64 amd64": "",
	} {
		t.Run(uname, func(t *testing.T) {
			in := newInstallation(t, "dash", "curl", "sha256sum")
			system, machine, _ := strings.Cut(uname, " ")
			fake := filepath.Join(t.TempDir(), "uname")
			script := fmt.Sprintf("#!/bin/sh\ncase $1 in -s) echo %s ;; -m) echo %s ;; esac\n", system, machine)
			if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			in.path = filepath.Dir(fake) + ":"
			if want == "" {
				out, status := in.run()
				wantStatus(t, out, status, 1)
				if len(in.asked) > 0 {
					t.Errorf("asked the server for %q", in.asked)
				}
				return
			}
			in.offer(want, archiveOf(t, &tar.Header{Name: "vx", Mode: 0o755}, newVX))
			out, status := in.run()
			wantStatus(t, out, status, 0)
			in.wantInstalled(newVX)
		})
	}
}

// A shell that reads from a pipe runs each line as it comes, so a download that breaks off must not have begun.
func TestInstallerThatBreaksOffDoesNothing(t *testing.T) {
	lines := strings.SplitAfter(contentOf(t, "install.sh"), "\n")
	lines = lines[:len(lines)-2] // what follows the last newline, and the call of main
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			home := t.TempDir()
			for n := range lines {
				cmd := exec.Command(program(t, shell))
				cmd.Stdin = strings.NewReader(strings.Join(lines[:n+1], ""))
				cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH"), "VX_INSTALL_URL=http://127.0.0.1:1"}
				out, _ := cmd.CombinedOutput() // the status differs with the place; what counts is what was done
				if strings.Contains(string(out), "vx install:") || len(names(t, home)) > 0 {
					t.Fatalf("the first %d lines did something:\n%s", n+1, out)
				}
			}
		})
	}
}

func TestReleasesHaveTheNamesThatTheInstallerAsksFor(t *testing.T) {
	config := contentOf(t, ".goreleaser.yaml")
	for _, want := range []string{
		`name_template: "vx_{{ .Os }}_{{ .Arch }}"`,
		"name_template: checksums.txt",
		"algorithm: sha256",
		"formats: [tar.gz]",
	} {
		if !strings.Contains(config, want) {
			t.Errorf(".goreleaser.yaml does not have %q", want)
		}
	}
}

// A linker that is given a variable that is not there says nothing.
func TestEveryWayToBuildSetsTheVersion(t *testing.T) {
	vx := filepath.Join(t.TempDir(), "vx")
	const variable = "main.release"
	build := exec.Command("go", "build", "-ldflags", "-X "+variable+"=9.8.7", "-o", vx, "./cmd/vx")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.Command(vx, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "vx 9.8.7 ") {
		t.Errorf("vx version says %q (%v)", out, err)
	}
	for _, file := range []string{"Makefile", ".goreleaser.yaml", "Formula/vx.rb"} {
		if !strings.Contains(contentOf(t, file), "-X "+variable+"=") {
			t.Errorf("%s does not set %s", file, variable)
		}
	}
}

func contentOf(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
