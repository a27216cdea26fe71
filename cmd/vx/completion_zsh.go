//go:build !windows

package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// zshScript completes in zsh: as a file _vx in the fpath, or sourced.
func zshScript(root *kong.Node) string {
	var b strings.Builder
	b.WriteString("#compdef vx\n# zsh completion for vx: source <(vx completion zsh), behind compinit\n")
	for _, c := range commands(root) {
		fmt.Fprintf(&b, "\n%s() {\n", zshName(c.path))
		specs := zshFlags(c)
		if len(c.children) == 0 {
			// -S: "--" ends the flags; -A: so does the command of vx run.
			fmt.Fprintf(&b, "  _arguments -s -S -A '-*' %s\n}\n", strings.Join(append(specs, zshArgs(c)...), " \\\n    "))
			continue
		}
		b.WriteString("  local curcontext=$curcontext state line\n  local -a offered\n")
		fmt.Fprintf(&b, "  _arguments -C %s \\\n    '1: :->command' '*:: :->rest'\n", strings.Join(specs, " \\\n    "))
		b.WriteString("  case $state in\n  command)\n    offered=(\n")
		for _, child := range c.children {
			fmt.Fprintf(&b, "      %s\n", zshQuote(child.Name+":"+strings.ReplaceAll(child.Help, ":", `\:`)))
		}
		b.WriteString("    )\n    _describe -t commands command offered ;;\n  rest)\n    case $line[1] in\n")
		for _, child := range c.children {
			fmt.Fprintf(&b, "    %s) %s ;;\n", child.Name, zshName(strings.TrimLeft(c.path+" "+child.Name, " ")))
		}
		b.WriteString("    esac ;;\n  esac\n}\n")
	}
	b.WriteString("\n_vx_command() {\n  [[ $words[1] == -- ]] && { shift words; (( CURRENT-- )) }\n  _normal\n}\n")
	b.WriteString("\nif [[ $funcstack[1] == _vx ]]; then\n  _vx \"$@\"\nelse\n  compdef _vx vx\nfi\n")
	return b.String()
}

func zshName(path string) string {
	return strings.TrimRight("_vx_"+strings.NewReplacer(" ", "_", "-", "_").Replace(path), "_")
}

func zshQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// zshFlags are the specifications of a command's flags.
func zshFlags(c command) []string {
	brackets := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`)
	var specs []string
	for _, f := range c.flags {
		spec := "--" + f.Name
		if f.IsSlice() {
			spec = "*" + spec
		}
		if !f.IsBool() {
			spec += "="
		}
		spec += "[" + brackets.Replace(f.Help) + "]"
		if !f.IsBool() {
			spec += ":" + f.FormatPlaceHolder() + ":" + zshOffer(offerOf(f.Value))
		}
		specs = append(specs, zshQuote(spec))
		if f.Short != 0 {
			specs = append(specs, zshQuote(fmt.Sprintf("-%c[%s]", f.Short, brackets.Replace(f.Help))))
		}
	}
	return specs
}

func zshArgs(c command) []string {
	var specs []string
	for _, v := range c.args {
		spec := ":" + v.Name + ":" + zshOffer(offerOf(v))
		if v.Passthrough {
			spec = "*::" + v.Name + ":_vx_command"
		}
		specs = append(specs, zshQuote(spec))
	}
	return specs
}

func zshOffer(o offer) string {
	switch {
	case len(o.words) > 0:
		return "(" + strings.Join(o.words, " ") + ")"
	case o.files == "dirs":
		return "_files -/"
	case o.files == "files":
		return "_files"
	}
	return " "
}
