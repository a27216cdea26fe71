//go:build !windows

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// errHelp says that help was asked for and has been printed.
var errHelp = errors.New("help")

// printHelp prints the help of a command; one that has commands itself is shown as their list, on one screen.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	at := ctx.Selected()
	if at == nil {
		at = ctx.Model.Node
	}
	switch {
	case len(at.Children) == 0:
		return errors.Join(kong.DefaultHelpPrinter(options, ctx), errHelp)
	case at.Parent == nil:
		return errors.Join(printOverview(ctx.Stdout, at), errHelp)
	}
	fmt.Fprintf(ctx.Stdout, "Usage: %s <command>\n\n%s\n", at.FullPath(), at.Help)
	width, group := 0, "none"
	for _, c := range at.Children {
		width = max(width, len(c.Path()))
	}
	for _, c := range at.Children {
		if c.Tag.Group != group {
			group = c.Tag.Group
			fmt.Fprintln(ctx.Stdout)
		}
		fmt.Fprintf(ctx.Stdout, "  %-*s    %s\n", width, c.Path(), c.Help)
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\nRun \"%s <command> --help\" for more about a command.\n", at.FullPath())
	return errors.Join(err, errHelp)
}

// printOverview prints all commands, in two columns: there are more of them than a screen has lines.
func printOverview(out io.Writer, vx *kong.Node) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: vx <command>\n\n%s\n", vx.Help)
	for i := 0; i < len(vx.Children); {
		end := i + 1
		for end < len(vx.Children) && vx.Children[end].Tag.Group == vx.Children[i].Tag.Group {
			end++
		}
		b.WriteByte('\n')
		rows := (end - i + 1) / 2
		for row := i; row < i+rows; row++ {
			line := fmt.Sprintf("  %-10s %-26s", vx.Children[row].Name, vx.Children[row].Tag.Get("brief"))
			if right := row + rows; right < end {
				line += fmt.Sprintf("  %-10s %s", vx.Children[right].Name, vx.Children[right].Tag.Get("brief"))
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		i = end
	}
	b.WriteString("\nRun \"vx <command> --help\" for more about a command.\n")
	_, err := io.WriteString(out, b.String())
	return err
}
