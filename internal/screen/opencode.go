package screen

import (
	"slices"
	"strings"
)

// OpenCode draws, from the bottom up: its status line; the input, a block behind `┃` that ends in `╹▀▀▀`; the
// conversation. The status line begins with eight moving cells while a turn runs. A dialog takes the place of the input.
// The title says nothing about the state.

var (
	opencodeCells  = pattern(`^ *[⬝■]{8}( |$)`)
	opencodeHint   = pattern(`(^|  |\[⋯\] +)esc (again to )?interrupt(  |$)`)
	opencodeStatus = pattern(`^( +[~/]\S| {10})`) // the directory, or nothing
	opencodeDialog = pattern(`^ +┃ .*(△ |Allow once   Allow always|\b(enter|↵) (submit|confirm|toggle)\b|\besc dismiss\b|⇆ (select|tab)\b)`)
)

func opencode(s pane) Reading {
	bottom := len(s) - 1
	for bottom >= 0 && !strings.HasPrefix(strings.TrimSpace(s[bottom]), "╹▀▀▀") {
		bottom--
	}
	// What stands above a dialog may be a copy of the input.
	if bottom < 0 || bottom+1 >= len(s) || slices.ContainsFunc(s[bottom+1:], isOpencodeBlock) {
		return opencodeWithoutInput(s)
	}
	status := s[bottom+1]
	if opencodeCells().MatchString(status) || opencodeHint().MatchString(strings.TrimSpace(status)) {
		return because(Working, "own line", status)
	}
	top := bottom
	for top > 0 && isOpencodeBlock(s[top-1]) {
		top--
	}
	_, end := paragraph(s[:top])
	if n := len(end); n > 0 && isOpencodeBlock(end[n-1]) {
		return because(Unknown, "", "") // a message that nothing answers yet
	}
	if !opencodeStatus().MatchString(status) {
		return because(Unknown, "", "")
	}
	return because(Idle, "own line", status)
}

// isOpencodeBlock says whether a line belongs to the input, a dialog, a message or a tool.
func isOpencodeBlock(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "┃") }

// opencodeWithoutInput judges a dialog, or what is no session at all.
func opencodeWithoutInput(s pane) Reading {
	for i := len(s) - 1; i >= 0 && isOpencodeBlock(s[i]); i-- {
		if opencodeDialog().MatchString(s[i]) {
			return because(Blocked, "dialog", strings.TrimLeft(s[i], " ┃"))
		}
	}
	return because(Unknown, "", "")
}
