//go:build !windows

package main

import (
	"bufio"
	"fmt"
	"strings"
)

// ask asks a question that no is the answer to unless somebody at a terminal says yes.
func ask(std stdio, question string) bool {
	if !isTerminal(std.in) {
		return false
	}
	fmt.Fprintf(std.errw(), "%s [y/N] ", question)
	answer, _ := bufio.NewReader(std.in).ReadString('\n') // an end without an answer is no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}
