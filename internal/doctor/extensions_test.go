package doctor

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"vx/install"
)

// extend puts an extension into its place.
func (w world) extend(scope install.Scope, h install.Harness) {
	w.Helper()
	p, err := install.Init(nil, w.root, scope, install.Choices{Harnesses: []install.Harness{h}})
	w.must(err)
	for _, x := range p.Extensions {
		w.write(x.Path, string(x.New))
	}
}

func TestWhatStandsInAnExtensionsPlaceIsSaid(t *testing.T) {
	w := newWorld(t)
	t.Setenv("PI_CODING_AGENT_DIR", "")
	w.says("Pi extension")
	w.says("OpenCode plugin")
	w.says("sentinel Stop hook", "warn not registered in*")
	w.extend(install.Project, install.Pi)
	w.extend(install.Project, install.OpenCode)
	w.says("Pi extension", "ok .pi/extensions/vexillum-wake.ts is current")
	w.says("OpenCode plugin", "ok .opencode/plugin/vexillum-wake.ts is current")
	w.says("sentinel Stop hook", "info not registered in*: another harness is woken here")
	w.extend(install.User, install.Pi)
	w.says("Pi extension", "ok .pi/*", "ok ~/.pi/agent/*", "info .pi/extensions/vexillum-wake.ts and ~/.pi/agent/extensions/vexillum-wake.ts are the same, of which Pi runs one")

	mine := w.root + "/.opencode/plugin/vexillum-wake.ts"
	earlier := "export default 1\n"
	header := fmt.Sprintf("// vexillum-wake %x: written by vx\n", sha256.Sum256([]byte(earlier)))
	for content, want := range map[string]string{
		header + earlier:           "warn .opencode/plugin/vexillum-wake.ts is another vx's: vx upgrade",
		header + earlier + "// me": "warn .opencode/plugin/vexillum-wake.ts was changed since vx wrote it: move it away, then vx init --harness opencode",
		"// me":                    "warn .opencode/plugin/vexillum-wake.ts is not what vx wrote: move it away if you do not need it",
	} {
		w.write(mine, content)
		w.says("OpenCode plugin", want)
	}
}

func TestTheHookForFailedTurnsIsLookedAtWhereItIs(t *testing.T) {
	w := newWorld(t)
	const name = "sentinel hook after a failed turn"
	w.init()
	w.says(name)
	p, err := install.Init(nil, w.root, install.Project, install.Choices{AfterFailure: "on"})
	w.must(err)
	w.write(p.Edits[0].Path, string(p.Edits[0].New))
	w.says(name, "ok registered in .claude/settings.json")
	w.write(p.Edits[0].Path, `{"hooks":{"StopFailure":[{"hooks":[{"type":"command","command":"vx sentinel await"}]}]}}`)
	w.says(name, "warn registered in .claude/settings.json, but *: vx upgrade")
}
