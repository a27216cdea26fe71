//go:build !windows

package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// fishScript completes in fish.
func fishScript(root *kong.Node) string {
	all := commands(root)
	var b strings.Builder
	fmt.Fprintf(&b, `# fish completion for vx: vx completion fish > ~/.config/fish/completions/vx.fish
function __vx_at
    set -l known %s
    set -l at
    for word in (commandline -opc)[2..-1]
        test "$word" = --; and break
        contains -- (string join -- ' ' $at $word) $known; and set -a at $word
    end
    test "$at" = "$argv"
end
complete -c vx -f
`, fishWords(paths(all)))
	for _, c := range all {
		when := "complete -c vx -n " + fishQuote("__vx_at "+c.path)
		for _, child := range c.children {
			fmt.Fprintf(&b, "%s -a %s -d %s\n", when, child.Name, fishQuote(child.Help))
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "%s -l %s", when, f.Name)
			if f.Short != 0 {
				fmt.Fprintf(&b, " -s %c", f.Short)
			}
			if !f.IsBool() {
				b.WriteString(fishOffer(offerOf(f.Value)))
			}
			fmt.Fprintf(&b, " -d %s\n", fishQuote(f.Help))
		}
		for _, v := range c.args {
			if o := offerOf(v); len(o.words) > 0 || o.files != "" {
				fmt.Fprintf(&b, "%s%s\n", when, fishOffer(o))
			}
		}
	}
	return b.String()
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(s) + "'"
}

func fishWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fishQuote(w)
	}
	return strings.Join(quoted, " ")
}

func fishOffer(o offer) string {
	switch {
	case len(o.words) > 0:
		return " -xa " + fishQuote(strings.Join(o.words, " "))
	case o.files == "dirs":
		return " -xa '(__fish_complete_directories)'"
	case o.files == "files":
		return " -rF"
	case o.files == "command":
		return " -xa '(__fish_complete_subcommand --fcs-skip=2)'"
	}
	return " -x"
}
