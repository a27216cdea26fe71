//go:build !windows

package main

import (
	_ "embed"
)

//go:embed guide.txt
var guideText string

type guideCommand struct{}

func (guideCommand) Run(std stdio) error {
	_, err := std.out.WriteString(guideText)
	return err
}
