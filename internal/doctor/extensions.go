package doctor

import (
	"context"
	"strings"

	"vx/install"
)

// extended looks at what a harness loads in the Stop hook's place.
func extended(h install.Harness) func(context.Context, *Patient) []Result {
	return func(_ context.Context, p *Patient) []Result {
		var all []Result
		var current []string
		for _, scope := range []install.Scope{install.Project, install.User} {
			x, known := install.ExtensionOf(p.Root, scope, h)
			if !known {
				continue
			}
			standing, err := x.Look()
			upgrade := "vx upgrade"
			if scope == install.User {
				upgrade += " --scope user"
			}
			switch {
			case err != nil:
				all = append(all, warning("see that it can be read", "%v", err)...)
			case standing == install.Current:
				current = append(current, x.Shown)
				all = append(all, ok("%s is current", x.Shown)...)
			case standing == install.Earlier:
				all = append(all, warning(upgrade, "%s is another vx's", x.Shown)...)
			case standing == install.Changed:
				all = append(all, warning("move it away, then vx init --harness "+string(h), "%s was changed since vx wrote it", x.Shown)...)
			case standing == install.Foreign:
				all = append(all, warning("move it away if you do not need it", "%s is not what vx wrote", x.Shown)...)
			}
		}
		if len(current) > 1 {
			all = append(all, info("%s are the same, of which %s runs one", strings.Join(current, " and "), h.Name())...)
		}
		return all
	}
}

// hasExtension reports whether a harness other than Claude Code is woken here.
func (p *Patient) hasExtension() bool {
	for _, h := range install.Harnesses {
		for _, scope := range []install.Scope{install.Project, install.User} {
			if x, known := install.ExtensionOf(p.Root, scope, h); known {
				if standing, err := x.Look(); err == nil && (standing == install.Current || standing == install.Earlier) {
					return true
				}
			}
		}
	}
	return false
}

// afterFailure looks at the same command for turns that died of an API error, where it is registered.
func afterFailure(_ context.Context, p *Patient) []Result {
	var all []Result
	for _, f := range p.files {
		switch own := f.AfterFailure(); {
		case len(own) > 1:
			all = append(all, warning(f.upgrade(), "registered %d times in %s", len(own), f.Shown)...)
		case len(own) == 1 && len(own[0].Wrong) > 0:
			all = append(all, warning(f.upgrade(), "registered in %s, but %s", f.Shown, strings.Join(own[0].Wrong, ", "))...)
		case len(own) == 1:
			all = append(all, ok("registered in %s", f.Shown)...)
		}
	}
	return all
}
