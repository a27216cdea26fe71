//go:build !windows

package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// ask asks a question that no is the answer to unless somebody at a terminal says yes. An interruption is a no as well: the
// signals of a command that tidies up do not end a read.
func ask(ctx context.Context, std stdio, question string) bool {
	if !isTerminal(std.in) {
		return false
	}
	fmt.Fprintf(std.errw(), "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() {
		answer, _ := bufio.NewReader(std.in).ReadString('\n') // an end without an answer is no
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		fmt.Fprintln(std.errw())
		return false
	}
}
