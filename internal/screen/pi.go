package screen

import (
	"strings"
	"unicode/utf8"
)

// Pi draws, from the bottom up: a line of numbers, the directory, and the input between two rules. While it works, and
// only then, the upper rule holds a spinner. Both rules begin at the left edge and go over the full width; a copy of
// them in the conversation is indented. The title never changes.

var (
	piNumbers = pattern(`(^|[ ↑↓])(\d+(\.\d+)?%|\?)/\d+(\.\d+)?[kM]?( |$)`)
	piSpinner = pattern(`^ [⠀-⣿] \S`)
	piScroll  = pattern(`^[↑↓] \d+ more$`)
	piHint    = pattern(`^ .*(navigate|select|submit|save|cancel)`)
)

func pi(s pane) Reading {
	bottom := len(s) - 1
	for bottom > 0 && !piIsRule(s[bottom], 0) {
		bottom--
	}
	columns := 0
	if bottom > 0 {
		columns = width(s[bottom])
		if piIsRule(s[bottom-1], 0) || bottom+1 < len(s) && strings.HasPrefix(s[bottom+1], "─") {
			return because(Unknown, "", "") // a terminal that was just made narrower has wrapped the rules
		}
	}
	top := -1
	for i := bottom - 1; i >= 0; i-- {
		if !piIsRule(s[i], columns) {
			continue
		}
		if label := piLabel(s[i]); isBraille(label) {
			return because(Working, "own line", label)
		}
		if top < 0 {
			top = i
		}
	}
	if top < 0 {
		return because(Unknown, "", "")
	}
	input := s[top+1 : bottom]
	switch dialog, line := piDialog(input); {
	case dialog:
		return because(Blocked, "dialog", line)
	case piLabel(s[top]) != "", !piFooter(s[bottom+1:]):
		return because(Unknown, "", "")
	case strings.Trim(strings.Join(s[:top], ""), "─") == "": // a pane too low to show a command that runs
		return because(Unknown, "", "")
	}
	// What takes another input than Pi's own has the spinner right above it. A command of the person's has its own
	// block: the spinner is its last line before the lower rule. The answers end one line higher.
	if top > 0 && piSpinner().MatchString(s[top-1]) {
		return because(Working, "spinner", s[top-1])
	}
	if _, end := paragraph(s[:top]); len(end) > 1 && piIsRule(end[len(end)-1], columns) && piSpinner().MatchString(end[len(end)-2]) {
		return because(Working, "spinner", end[len(end)-2])
	}
	return because(Idle, "own line", joined(s[bottom+1:]))
}

// piDialog says whether the place of the input holds a dialog or a picker: unlike a text that is typed, these are
// indented, stand between blank lines and end with their keys. The line is what is asked.
func piDialog(input []string) (bool, string) {
	n := len(input)
	if n < 4 || input[0] != "" || input[n-1] != "" || indent(input[1]) != 1 {
		return false, ""
	}
	return piHint().MatchString(input[n-2]), input[1]
}

// isBraille says whether a text begins with a frame of a spinner.
func isBraille(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return r >= '⠀' && r <= '⣿'
}

// piIsRule says whether a line is a rule, plain or with a label, of that many columns; 0 is any number.
func piIsRule(line string, columns int) bool {
	return utf8.RuneCountInString(line) >= minRule && strings.HasPrefix(line, "──") && strings.HasSuffix(line, "─") && (columns == 0 || width(line) == columns)
}

// piLabel is what a rule holds.
func piLabel(rule string) string {
	label := strings.TrimSpace(strings.Trim(rule, "─"))
	if piScroll().MatchString(label) {
		return ""
	}
	return label
}

// piFooter says whether the directory and the numbers are what stands last.
func piFooter(below []string) bool {
	for i, line := range below {
		if (strings.HasPrefix(line, "~") || strings.HasPrefix(line, "/")) && i+1 < len(below) && piNumbers().MatchString(below[i+1]) {
			return true
		}
	}
	return false
}
