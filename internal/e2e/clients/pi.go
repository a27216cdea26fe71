package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A Pi is one release.
type Pi struct {
	Version string
	module  string // its name at npm
	main    string // what Node.js runs, in the module
	trusts  string // the argument by which it trusts the folder that it is started in; "": it asks for none
}

var (
	PiToday = Pi{"1.6.0", "@earendil-works/pi-coding-agent", "dist/bundle/cli.js", "--approve"}
	// PiOld is the last one under the old name: its contexts have no mode, and it does not say when a run has settled.
	PiOld = Pi{"0.73.1", "@mariozechner/pi-coding-agent", "dist/cli.js", ""}
)

// nodeVersion is one that both run on; the newer Pi wants 22.19 at least.
const nodeVersion = "24.21.0"

// Command is what starts this Pi: Node.js and Pi's program.
func (p Pi) Command(t *testing.T) []string {
	t.Helper()
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	node := "node-linux-" + arch
	return []string{
		filepath.Join(Installed(t, node, nodeVersion), node, "bin", "node"),
		filepath.Join(Installed(t, p.module, p.Version), filepath.FromSlash(p.module), filepath.FromSlash(p.main)),
	}
}

// Trusting is Command for a folder that is trusted.
func (p Pi) Trusting(t *testing.T) []string {
	t.Helper()
	if p.trusts == "" {
		return p.Command(t)
	}
	return append(p.Command(t), p.trusts)
}

// PiConfig writes Pi's configuration: the OpenAI-like model at the URL, with a key that is none; or no model, where the URL is "".
func PiConfig(t *testing.T, home, url string) {
	t.Helper()
	models, settings := map[string]any{}, map[string]any{}
	if url != "" {
		models["providers"] = map[string]any{"mock": map[string]any{"baseUrl": url, "apiKey": "not-a-key", "api": "openai-completions",
			"models": []any{map[string]any{"id": "mock-1", "contextWindow": 100000, "maxTokens": 4096}}}}
		settings = map[string]any{"defaultProvider": "mock", "defaultModel": "mock-1", "compaction": map[string]any{"keepRecentTokens": 10}}
	}
	dir := filepath.Join(home, ".pi", "agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]any{"models.json": models, "settings.json": settings} {
		data, err := json.Marshal(content)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// PiEnv is what keeps Pi from asking anybody but its model.
var PiEnv = []string{"PI_OFFLINE=1", "PI_SKIP_VERSION_CHECK=1", "PI_TELEMETRY=0"}
