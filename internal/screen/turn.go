package screen

import "strings"

// lastTurn is the last turn on a screen, by the layout of the client, and the width of the terminal. It is empty where
// the screen shows no conversation with an input below it.
func lastTurn(agent string, s pane) ([]turnLine, int) {
	switch agent {
	case "claude":
		if box, ok := findClaudeBox(s); ok {
			columns := width(s[box.top])
			return blockTurn(leftOfPanel(s[:box.top], columns), "❯", "●", false), columns
		}
	case "codex":
		if prompt, ok := codexPrompt(s); ok {
			return blockTurn(s[:prompt], "›", "•", true), widest(s)
		}
	case "pi":
		return piTurn(s)
	case "opencode":
		return opencodeTurn(s)
	}
	return nil, 0
}

// blockTurn reads a conversation in which each block begins at the left edge, with a glyph, and goes on indented by
// two: a prompt with one glyph, an answer with another, which tools have as well. Where the first line is sticky it may
// repeat the prompt of what is out of view, so nothing below it is known to be that prompt's.
func blockTurn(lines []string, prompt, answer string, sticky bool) []turnLine {
	start, asked := 0, false
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], prompt) {
			start, asked = i, i > 0 || !sticky
			break
		}
	}
	turn := make([]turnLine, 0, len(lines)-start)
	answers, proven := !asked, false // before the first head after a prompt all is that prompt's
	for i, line := range lines[start:] {
		switch {
		case line == "":
		case strings.HasPrefix(line, answer+" "):
			answers, proven = true, true
			line = "  " + strings.TrimLeft(strings.TrimPrefix(line, answer), " ")
		case indent(line) == 0:
			answers, proven = i == 0 && !asked, false
		}
		text := strings.TrimSpace(line)
		turn = append(turn, turnLine{text: text, column: indent(line), own: answers && indent(line) == 2, proven: proven})
	}
	return turn
}

// piTurn reads the last block of Pi's conversation. All is indented by one; but prompts and tools stand between two blank
// lines, paragraphs of an answer between one.
func piTurn(s pane) ([]turnLine, int) {
	top := len(s) - 1
	for rules := 0; top >= 0; top-- {
		if piIsRule(s[top], 0) {
			if rules++; rules == 2 {
				break
			}
		}
	}
	if top < 0 {
		return nil, 0
	}
	end := top
	for end > 0 && s[end-1] == "" {
		end--
	}
	start := end
	for start > 0 && (s[start-1] != "" || start > 1 && s[start-2] != "") {
		start--
	}
	turn := make([]turnLine, 0, end-start)
	tool, code := false, false
	for _, line := range s[start:end] {
		text := strings.TrimSpace(line)
		tool = tool || strings.HasPrefix(line, " $ ")
		if strings.HasPrefix(text, "```") {
			code = !code
		}
		turn = append(turn, turnLine{text: text, column: indent(line), own: indent(line) == 1 && !tool && !code})
	}
	return turn, width(s[top])
}

// opencodeTurn reads the conversation of OpenCode: answers are indented by five, what is behind `┃` are prompts and
// tools, and each turn closes with a line of its own.
func opencodeTurn(s pane) ([]turnLine, int) {
	bottom := len(s) - 1
	for bottom >= 0 && !strings.HasPrefix(strings.TrimSpace(s[bottom]), "╹▀▀▀") {
		bottom--
	}
	if bottom < 0 {
		return nil, 0
	}
	columns := width(s[bottom]) // the input's, which the answers share
	start, closed := 0, 0
	for i := bottom - 1; i >= 0 && closed < 2; i-- {
		if strings.HasPrefix(s[i], "     ▣  ") {
			if closed++; closed == 2 {
				start = i + 1
			}
		}
	}
	turn := make([]turnLine, 0, bottom-start)
	for _, line := range s[start:bottom] {
		turn = append(turn, turnLine{text: strings.TrimSpace(line), column: indent(line), own: indent(line) == 5})
	}
	return turn, columns
}

// widest is how many columns the widest line takes: the terminal has at least these.
func widest(lines []string) int {
	n := 0
	for _, line := range lines {
		n = max(n, width(line))
	}
	return n
}
