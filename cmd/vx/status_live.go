//go:build !windows

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"
)

// refresh is how often the live view looks.
const refresh = time.Second

// live shows the status anew whenever it has changed: in place on a terminal, one after another elsewhere.
func (s *statusCommand) live(ctx context.Context, std stdio) error {
	const home, clear, hide, show = "\x1b[H", "\x1b[J", "\x1b[?25l", "\x1b[?25h"
	terminal := isTerminal(std.out) && !s.JSON
	if terminal {
		fmt.Fprint(std.out, clear+hide)
		defer fmt.Fprint(std.out, show)
	}
	last := ""
	for {
		var now bytes.Buffer
		if err := s.once(ctx, &now, &now); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		text := now.String()
		var err error
		switch {
		case text == last:
		case terminal:
			_, err = io.WriteString(std.out, home+clear+fitting(text, int(std.out.Fd())))
		case s.JSON || last == "":
			_, err = io.WriteString(std.out, text)
		default:
			_, err = io.WriteString(std.out, "\n"+text)
		}
		if err != nil {
			return err
		}
		last = text
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(refresh):
		}
	}
}

// fitting is as much of a text as a terminal shows without scrolling.
func fitting(text string, fd int) string {
	width, height, err := term.GetSize(fd)
	if err != nil || width <= 0 || height <= 1 {
		return text
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) >= height {
		lines = append(lines[:height-2:height-2], "  …")
	}
	for i, line := range lines {
		lines[i] = short(line, width)
	}
	return strings.Join(lines, "\n") + "\n"
}
