package screen

import (
	"slices"
	"strings"
	"unicode"
)

// Claude Code draws, from the bottom up: rows of agents or a menu; its own line, and above that the person's status
// line; a box of two full-width rules around the prompt; the conversation. A dialog, a picker and the transcript take
// the place of the box. The conversation is indented by two, but for the first line of each block: so text that a model,
// a tool or a setting prints never begins a line at the left edge with a glyph of the client's, `●` excepted.

var (
	claudeSummary = pattern(`^✻ (Baked|Brewed|Churned|Cogitated|Cooked|Crunched|Sautéed|Worked) for (\d+h ?)?(\d+m ?)?(\d+(\.\d+)?m?s)?( · [^…·]+)*$`)
	claudeStill   = pattern(` · \d+ [^·]*still running$`)
	claudeWaiting = pattern(`^✻ Waiting for \d+ background agents? to finish$`)
	claudeSpinner = pattern(`^[·✢*✶✻✽✳] \S.*(…$|… *\(|\b[Rr]etrying in \d|· attempt \d+/\d+)`)
	claudeRetry   = pattern(`\b[Rr]etrying in \d|· attempt \d+/\d+`) // below what the server said, which may be anything
	claudeReduced = pattern(`^● \S.*…($| \(\d+[ms])`)                // prefersReducedMotion; or an answer, or a tool that runs
	claudeRunning = pattern(`^  ⎿  (Running|Waiting)…`)
	claudeStopped = pattern(`^(  ⎿  (Interrupted · What s|(User r|R)ejected |API Error: )|● (API Error: |(User d|D)eclined to answer ))`)

	claudeMode  = pattern(`^(⏸|⏵⏵) \S.* on\b`)
	claudeTask  = pattern(`^\d+ ((shell|monitor|background task)s?\b|[a-z ]*…$)`)
	claudeKnown = pattern(`^(\? for shortcuts|esc to interrupt|[←↓↑] .*|/tasks .*|[Ee]nter to .*|ctrl\+.*|shift\+.*|…|)$`)
	claudeHint  = pattern(`^([Ee]nter |ctrl\+|shift\+|…|$)`) // stands there alone, instead of all else
	claudeVim   = pattern(`^-- [A-Z][A-Z ]* -- *`)
	claudeRow   = pattern(`^ {1,4}(❯ )?[◯○◌] \S`)

	claudeFiles   = pattern(`^    [+*◇] \S`)
	claudeMore    = pattern(`^─+ ↑ \d+ more `) // the beginning of a long prompt is out of view
	claudePill    = pattern(`(Jump to bottom|\d+ new messages?) \(ctrl\+End\) ↓`)
	claudeAwaited = pattern(`Waiting for your answer \(ctrl\+End\) ↓`)
	claudeOption  = pattern(`^ {0,3}❯ \S`)
	claudeFirst   = pattern(`^ {0,3}❯ \d+\. \S`)
	claudeFooter  = pattern(`(?i)\b(esc to (cancel|reject|exit|go back|close)|enter to (confirm|select|continue|submit)|shift\+tab to approve|ctrl\+g to edit in)\b|\(esc\)`)
)

// claudeTitle is what the glyph before a title says.
type claudeTitle int

const (
	titleSilent claudeTitle = iota // none, or of another form: it proves nothing
	titleBusy                      // a turn, a background agent, a hook or a command of the person runs
	titleCalm                      // none of these: background shells, monitors and dialogs all show it
)

func readClaudeTitle(title string) claudeTitle {
	switch glyph, _, _ := strings.Cut(title, " "); glyph {
	case "⠂", "⠐", "◐", "◑":
		return titleBusy
	case "✳":
		return titleCalm
	}
	return titleSilent
}

func claude(s pane, title string) Reading {
	says := readClaudeTitle(title)
	box, ok := findClaudeBox(s)
	if !ok {
		return claudeWithoutBox(s, says, title)
	}
	own, end := readClaudeOwn(s, box), readClaudeEnd(s, box)
	switch {
	case own.interrupt:
		return because(Working, "own line", own.line)
	case end.is == claudeSpins:
		return because(Working, "spinner", end.line)
	case says == titleBusy && (end.is == claudeEnded || end.is == claudeEndedBusy || end.is == claudeAwaits):
		return because(Background, "title", title)
	case says == titleBusy:
		return because(Working, "title", title)
	case own.task:
		return because(Background, "own line", own.line)
	case end.is == claudeEndedBusy && !own.sure:
		return because(Background, "summary", end.line)
	case says == titleCalm && (end.is == claudeMayRun || !own.tells && end.is != claudeEnded && end.is != claudeFresh):
		return because(Unknown, "", "")
	case says == titleCalm:
		return because(Idle, "title", title)
	}
	return claudeUntitled(own, end)
}

// claudeUntitled judges where neither the title nor a sign of work is there. While text streams there may be none, so
// an idle session has to show its end; and what an answer could print must be confirmed by the own line.
func claudeUntitled(own claudeOwn, end claudeEnd) Reading {
	switch {
	case end.is == claudeAwaits:
		return because(Background, "summary", end.line)
	case own.rows && own.manual:
		return because(Background, "agents", own.line)
	case own.rows, end.scrolled: // 2.1.197 keeps the rows of agents that ended long ago
		return because(Unknown, "", "")
	case end.is == claudeFresh:
		return because(Idle, "new session", end.line)
	case end.is == claudeEnded, end.is == claudeEndedBusy:
		return because(Idle, "summary", end.line)
	case end.is == claudeHalted && own.sure:
		return because(Idle, "interrupted", end.line)
	}
	return because(Unknown, "", "")
}

// claudeBox is where the prompt stands: the indices of its two rules.
type claudeBox struct{ top, bottom int }

// findClaudeBox finds the box that is live: nothing but the client's own lines is below it.
func findClaudeBox(s pane) (claudeBox, bool) {
	bottom := len(s) - 1
	for bottom > 0 && !isRule(s[bottom], '─') {
		if isRule(s[bottom], '▔') {
			return claudeBox{}, false // a dialog of 2.1.332
		}
		bottom--
	}
	if bottom > 0 && isRule(s[bottom-1], '─') && width(s[bottom-1]) > width(s[bottom]) {
		return claudeBox{}, false // a terminal that was just made narrower has wrapped the rules
	}
	for top := bottom - 1; top >= 0; top-- {
		// The upper rule may carry the session's name.
		if !strings.HasPrefix(s[top], "──") || !strings.HasSuffix(s[top], "─") || width(s[top]) != width(s[bottom]) {
			continue
		}
		prompt := s[top+1]
		menu := strings.HasPrefix(prompt, "❯ /") || strings.Contains(prompt, "@")
		for _, line := range s[bottom+1:] {
			if line != "" && indent(line) == 0 && !menu {
				return claudeBox{}, false // a shell's prompt after the client's end, or a line of something unknown
			}
		}
		lively := claudeMore().MatchString(s[top]) || strings.HasPrefix(prompt, "❯") || strings.HasPrefix(prompt, "! ") || prompt == "!" || strings.HasPrefix(prompt, "# ")
		return claudeBox{top, bottom}, lively && top+1 < bottom
	}
	return claudeBox{}, false
}

// claudeOwn is what the client's own line says, and the rows under it.
type claudeOwn struct {
	line      string
	interrupt bool // a turn runs
	shortcuts bool // no turn, no shell: the place of both shows the hint for them
	task      bool // shells or monitors run
	tells     bool // would say so if they did: it is all there, no hint stands in its place
	manual    bool // names the default mode, as 2.1.332 does
	rows      bool // agents are listed
	sure      bool // has the hint that a turn takes away, alone and with nothing typed: so no status line printed it
}

// readClaudeOwn finds the own line: the last one of the block below the box. A status line of the person's is before it,
// and where the own line is empty a status line is taken for it only if every word in it could be the client's.
func readClaudeOwn(s pane, box claudeBox) claudeOwn {
	below := s[box.bottom+1:]
	end := slices.Index(below, "")
	if end < 0 {
		end = len(below)
	}
	block := slices.DeleteFunc(slices.Clone(below[:end]), func(line string) bool {
		return indent(line) > 2 // a narrow terminal pushes what stands at the right into a line of its own
	})
	if len(block) == 0 {
		return claudeOwn{}
	}
	own := parseClaudeOwn(block[len(block)-1])
	own.rows = slices.ContainsFunc(below[end:], claudeRow().MatchString)
	own.sure = own.shortcuts && len(block) == 1 && s[box.top+1] == "❯"
	return own
}

func parseClaudeOwn(line string) claudeOwn {
	left, _, _ := strings.Cut(strings.TrimSpace(line), "   ")
	own := claudeOwn{line: left}
	if vim := claudeVim().FindString(left); vim != "" {
		left = left[len(vim):]
	}
	own.manual = strings.HasPrefix(left, "⏸ manual mode on")
	segments := strings.Split(left, " · ")
	mode := claudeMode().MatchString(segments[0])
	for i, segment := range segments {
		segment = strings.TrimSpace(segment)
		switch {
		case segment == "esc to interrupt", i > 0 && strings.HasPrefix(segment, "esc to i"):
			own.interrupt = true
		case segment == "? for shortcuts":
			own.shortcuts = true
		case claudeTask().MatchString(segment):
			own.task = true
		case i == 0 && mode, claudeKnown().MatchString(segment):
			own.tells = own.tells || mode || !claudeHint().MatchString(segment)
		case !mode: // a status line, or an own line with something new in it
			return claudeOwn{}
		}
	}
	last := segments[len(segments)-1]
	cut := strings.HasSuffix(last, "…") && (len(segments) == 1 || last == "…")
	own.tells = (own.tells || own.shortcuts) && !cut
	return own
}

// claudeEnd is how the conversation above the box ends.
type claudeEnd struct {
	is       claudeEnding
	line     string
	scrolled bool // its end is out of view
}

type claudeEnding int

const (
	claudeElse      claudeEnding = iota // an answer, a tool, a prompt, a notice: it proves nothing
	claudeSpins                         // the spinner
	claudeMayRun                        // what could be a spinner or a running tool, and could be text
	claudeEnded                         // the summary of a turn
	claudeEndedBusy                     // the same; it says that shells still run
	claudeAwaits                        // the turn waits for agents
	claudeHalted                        // interrupted, or ended by an error; a tool could print it
	claudeFresh                         // nothing was said yet
)

// claudeIsHalted says whether a block tells of an end: an interrupt, an error, a refused plan, a command of the
// client's own that has answered.
func claudeIsHalted(block []string) bool {
	if strings.HasPrefix(block[0], "!") {
		return false // a command of the person's, which may print anything and still run
	}
	if strings.HasPrefix(block[0], "❯ /") {
		return len(block) > 1 && strings.HasPrefix(block[1], "  ⎿  ")
	}
	return slices.ContainsFunc(block, claudeStopped().MatchString)
}

func readClaudeEnd(s pane, box claudeBox) claudeEnd {
	columns := width(s[box.top])
	above := leftOfPanel(s[:box.top], columns)
	var end claudeEnd
	var para []string
	start := len(above)
	for start > 0 && len(para) == 0 {
		start, para = paragraph(above[:start])
		end.scrolled = end.scrolled || slices.ContainsFunc(para, claudePill().MatchString)
		for len(para) > 0 && atRight(para[len(para)-1], columns) {
			para = para[:len(para)-1]
		}
		if len(para) > 0 && (strings.HasPrefix(para[0], "  ❯ ") || claudeFiles().MatchString(para[0]) && strings.Contains(s[box.top+1], "@")) {
			para = nil // messages that wait, or a menu
		}
	}
	if len(para) == 0 {
		return end
	}
	head := len(para) - 1
	for head > 0 && indent(para[head]) > 0 {
		head--
	}
	text, _, _ := strings.Cut(joined(para[head:]), " ⎿ ")
	if indent(para[head]) > 0 {
		text = "" // the text of an answer, whatever it says
	}
	bottom := para[len(para)-1]
	end.line = text
	switch {
	case claudeSummary().MatchString(text) && !claudeRetry().MatchString(text):
		end.is = claudeEnded
		if claudeStill().MatchString(text) {
			end.is = claudeEndedBusy
		}
	case claudeWaiting().MatchString(text):
		end.is = claudeAwaits
	case claudeSpinner().MatchString(text):
		end.is = claudeSpins
	case claudeReduced().MatchString(text):
		end.is = claudeMayRun
	case claudeIsHalted(para):
		end.is, end.line = claudeHalted, bottom
	case claudeIsFresh(above[:start+len(para)], columns):
		end.is, end.line = claudeFresh, strings.TrimSpace(bottom)
	default:
		for _, line := range para {
			if claudeRunning().MatchString(line) {
				end.is, end.line = claudeMayRun, line
			}
		}
	}
	return end
}

// claudeIsFresh says whether nothing but the client's picture is above the box, with its notices and the command that
// cleared the rest. The picture moves, but some row of it begins at the left edge, where no answer can put it. While it
// is not drawn its text stands alone, which an answer could print.
func claudeIsFresh(above []string, columns int) bool {
	for i := len(above) - 1; i >= 0; i-- {
		before, _, ok := strings.Cut(above[i], "Claude Code v")
		if !ok || width(before) != claudePicture || strings.ContainsFunc(before, isNoPicture) {
			continue
		}
		drawn := false
		for ; i < len(above) && above[i] != ""; i++ {
			drawn = drawn || indent(above[i]) < 2
			if strings.ContainsFunc(firstColumns(above[i], claudePicture), isNoPicture) {
				return false
			}
		}
		return drawn && !slices.ContainsFunc(above[i:], func(line string) bool {
			return line != "" && line != "❯ /clear" && !strings.HasPrefix(line, "▎") && !atRight(line, columns)
		})
	}
	return false
}

// claudePicture is how many columns the client's picture takes, before the text beside it.
const claudePicture = 11

// isNoPicture says whether a character is a letter or a digit: the picture is made of blocks and a few marks.
func isNoPicture(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// atRight says whether a line is a notice at the right edge.
func atRight(line string, columns int) bool {
	return indent(line) > columns/3 || indent(line) > 7 && width(line) >= columns-2
}

// leftOfPanel cuts what a panel at the right shows: on wide terminals one stands there, behind a line in every row.
func leftOfPanel(lines []string, columns int) []string {
	at := map[int]int{}
	full := 0
	for _, line := range lines {
		if line == "" {
			continue
		}
		full++
		column := 0
		for _, r := range line {
			if r == '│' {
				at[column]++
			}
			column += columnsOf(r)
		}
	}
	panel := 0
	for column, n := range at {
		if column > columns/3 && n > full/2 && n > 4 && (panel == 0 || column < panel) {
			panel = column
		}
	}
	if panel == 0 {
		return lines
	}
	cut := make([]string, len(lines))
	for i, line := range lines {
		cut[i] = strings.TrimRight(firstColumns(line, panel), " ")
	}
	return cut
}

// claudeWithoutBox judges a dialog, a picker, the transcript, or what is no session at all. None of them is ever idle: a
// dialog may wait behind a transcript.
func claudeWithoutBox(s pane, says claudeTitle, title string) Reading {
	s = leftOfPanel(s, widest(s))
	if state, line := claudeTranscript(s); line != "" {
		switch {
		case state == "dialog waiting":
			return because(Blocked, "transcript", line)
		case state == "working":
			return because(Working, "transcript", line)
		case says == titleBusy:
			return because(Working, "title", title)
		}
		return because(Unknown, "", "")
	}
	switch marked, sheet := claudeMarked(s), claudeSheet(s); {
	case !claudeDialog(s, marked, sheet):
	case marked != "":
		return because(Blocked, "dialog", marked)
	default: // a panel that the person opened while a turn runs looks the same
		if end := readClaudeEnd(s, claudeBox{top: sheet}); end.is == claudeSpins {
			return because(Working, "spinner", end.line)
		}
		if says != titleBusy {
			return because(Blocked, "dialog", s[len(s)-1])
		}
	}
	if says == titleBusy {
		return because(Working, "title", title)
	}
	for _, line := range s[max(0, len(s)-3):] {
		if claudeAwaited().MatchString(line) {
			return because(Blocked, "dialog", line)
		}
	}
	return because(Unknown, "", "")
}

// claudeTranscript is the line below a transcript and what it says first, which is nothing while the client rests; in
// narrow terminals its end is cut or wrapped.
func claudeTranscript(lines []string) (state, line string) {
	for i := len(lines) - 2; i >= max(0, len(lines)-5); i-- {
		if !isRule(lines[i], '─') {
			continue
		}
		state, rest, ok := strings.Cut(strings.TrimSpace(lines[i+1]), " · ")
		if strings.HasPrefix(state, "Showing") {
			return "", lines[i+1]
		}
		if ok && strings.HasPrefix(rest, "Showing") {
			return state, lines[i+1]
		}
		break
	}
	return "", ""
}

// claudeDialog says whether lines end in a dialog: below the last rule an option is marked, or nothing begins at the left
// edge, and the last lines tell the keys; where these are cut, the options are numbered.
func claudeDialog(lines []string, marked string, sheet int) bool {
	if marked == "" && sheet == 0 {
		return false
	}
	_, last := paragraph(lines)
	if claudeFooter().MatchString(joined(last[max(0, len(last)-3):])) {
		return true
	}
	return claudeFirst().MatchString(marked)
}

// claudeSheet is the lowest full-width rule above lines that are all indented, or 0: so a dialog without options begins.
func claudeSheet(lines []string) int {
	for i := len(lines) - 1; i > 0; i-- {
		if isRule(lines[i], '─') || isRule(lines[i], '▔') {
			return i
		}
		if lines[i] != "" && indent(lines[i]) == 0 {
			return 0
		}
	}
	return 0
}

// claudeMarked is the marked option below the last full-width rule, or the one before: some dialogs have a rule inside,
// but `▔` is always the first line of one.
func claudeMarked(lines []string) string {
	rules := 0
	for i := len(lines) - 1; i >= 0; i-- {
		if isRule(lines[i], '─') || isRule(lines[i], '▔') {
			if rules++; rules > 1 || isRule(lines[i], '▔') {
				return ""
			}
		}
		if claudeOption().MatchString(lines[i]) {
			return lines[i]
		}
	}
	return ""
}
