//go:build !windows

package main

import (
	"errors"
	"fmt"

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
	if len(at.Children) == 0 {
		return errors.Join(kong.DefaultHelpPrinter(options, ctx), errHelp)
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
