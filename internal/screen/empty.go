package screen

import "strings"

// Empty says that a client is seen to wait at its prompt with nothing in it: what is typed there is the whole of the next
// message. It is false where that cannot be seen. Suggestions, in faint letters, are nothing only in a text with its
// colours, as escape sequences.
func Empty(agent, text string) bool {
	if strings.Count(text, "\n") > linesUp {
		return false
	}
	strong, _ := withoutFaint(text)
	s := read(text)
	switch agent {
	case "claude":
		if _, found := findClaudeBox(s); !found || claudeTyped(s, read(strong)) != "" {
			return false
		}
	case "opencode":
		if !opencodeEmpty(s) {
			return false
		}
	case "pi":
		if !piEmpty(s) {
			return false
		}
	default:
		return false
	}
	return Read(agent, text, "").State == Idle
}

// opencodeEmpty says that the input is blank but for its last line, which names the agent and the model.
func opencodeEmpty(s pane) bool {
	bottom := len(s) - 1
	for bottom >= 0 && !strings.HasPrefix(strings.TrimSpace(s[bottom]), "╹▀▀▀") {
		bottom--
	}
	if bottom < 1 || !isOpencodeBlock(s[bottom-1]) || opencodeInput(s[bottom-1]) == "" {
		return false
	}
	for i := bottom - 2; i >= 0 && isOpencodeBlock(s[i]); i-- {
		if opencodeInput(s[i]) != "" {
			return false
		}
	}
	return bottom > 1 && isOpencodeBlock(s[bottom-2])
}

func opencodeInput(line string) string {
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "┃"))
}

// piEmpty says that there is nothing between the last two rules.
func piEmpty(s pane) bool {
	bottom := len(s) - 1
	for bottom > 0 && !piIsRule(s[bottom], 0) {
		bottom--
	}
	for i := bottom - 1; i >= 0; i-- {
		if piIsRule(s[i], width(s[bottom])) {
			return i < bottom-1
		}
		if strings.TrimSpace(s[i]) != "" {
			return false
		}
	}
	return false
}
