//go:build !windows

package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completion struct {
	Shell string `arg:"" name:"shell" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completion) Help() string {
	return "For example: source <(vx completion bash) in ~/.bashrc, source <(vx completion zsh) in ~/.zshrc behind compinit, " +
		"vx completion fish > ~/.config/fish/completions/vx.fish."
}

func (c completion) Run(std stdio, app *kong.Kong) error {
	script := map[string]func(*kong.Node) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := std.out.WriteString(script(app.Model.Node))
	return err
}

// offer is what may stand in one place of a command line.
type offer struct {
	words []string // fixed words
	files string   // "dirs", "files" or "command": what the shell itself completes
}

// offerOf is what may be the value of a flag or an argument.
func offerOf(v *kong.Value) offer {
	placeholder := ""
	if v.Flag != nil {
		placeholder = v.Flag.PlaceHolder
	}
	switch {
	case v.Passthrough && v.Name == "command": // and not what is passed on to a program that is known
		return offer{files: "command"}
	case v.Enum != "":
		return offer{words: v.EnumSlice()}
	case placeholder == "DIR", v.Flag == nil && v.Tag.Type == "path":
		return offer{files: "dirs"}
	case placeholder == "PATH":
		return offer{files: "files"}
	}
	return offer{}
}

// command is one command of the grammar, with all that completion needs.
type command struct {
	path     string // "wake send", "" for vx itself
	children []*kong.Node
	flags    []*kong.Flag
	args     []*kong.Value
}

// commands are all commands of the grammar, vx itself first.
func commands(n *kong.Node) []command {
	c := command{path: strings.TrimPrefix(strings.TrimPrefix(n.FullPath(), "vx"), " "), args: n.Positional}
	for _, group := range n.AllFlags(true) {
		c.flags = append(c.flags, group...)
	}
	for _, child := range n.Children {
		if !child.Hidden {
			c.children = append(c.children, child)
		}
	}
	all := []command{c}
	for _, child := range c.children {
		all = append(all, commands(child)...)
	}
	return all
}

// paths are the paths of all commands but vx itself.
func paths(all []command) []string {
	var paths []string
	for _, c := range all[1:] {
		paths = append(paths, c.path)
	}
	return paths
}

// words are the fixed words that may follow a command: its commands, its first argument's values, its flags.
func (c command) words() []string {
	var words []string
	for _, child := range c.children {
		words = append(words, child.Name)
	}
	if len(c.args) > 0 {
		words = append(words, offerOf(c.args[0]).words...)
	}
	for _, f := range c.flags {
		words = append(words, "--"+f.Name)
	}
	return words
}

// files is what the shell completes after a command; "" where it has no such argument.
func (c command) files() string {
	i := slices.IndexFunc(c.args, func(v *kong.Value) bool { return offerOf(v).files != "" })
	if i < 0 {
		return ""
	}
	return offerOf(c.args[i]).files
}
