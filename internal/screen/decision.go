package screen

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A soldier that cannot go on without an answer ends its turn with a line
//
//	needs-decision: Shall I keep the empty fields or drop them?
//
// and, if it likes, a list of options below. The same words stand in the prompt that told it so, in files it reads and
// in code it quotes. What is doubtful is no question: a question that is missed is told of as an idle pane, with its
// text, while one that is invented has somebody answer what nobody asked.

const (
	decisionMark = "needs-decision:"
	questionCap  = 600
	optionCap    = 200
	optionsCap   = 12
	wrapMargin   = 6       // how many columns at most a client leaves free at the right
	promptCap    = 1 << 18 // of the prompt's end
)

var (
	decisionBullet = pattern(`^([-*•‣] |\d{1,2}[.)] |\(?[a-zA-Z][.)] )`)
	placeholder    = pattern("(^|[\\s`'\"(|/])<[^<>]{1,80}>")
)

// Decision is the question of the last turn's last `needs-decision:` line, with the options listed below it. prompt is
// the text that was sent last, if it is known: where the screen does not show whose a line is, one that stands in the
// prompt is taken for the prompt's.
func Decision(agent, text, prompt string) (question string, options []string, ok bool) {
	s := read(text)
	turn, columns := lastTurn(agent, s)
	return lastQuestion(turn, columns, squash(prompt[max(0, len(prompt)-promptCap):]))
}

// Asked is Decision for the answer itself, as its client has written it down: nothing of a prompt stands in it.
func Asked(answer string) (question string, options []string, ok bool) {
	var turn []turnLine
	code := false
	for _, line := range read(answer) {
		text := strings.TrimSpace(line)
		if strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~") {
			code = !code
		}
		turn = append(turn, turnLine{text: text, column: indent(line), own: !code && indent(line) < 4, proven: true})
	}
	return lastQuestion(turn, unwrapped, "")
}

// unwrapped is the width of what no terminal has wrapped: each line stands for itself.
const unwrapped = 1 << 20

// lastQuestion is the one of the last line that is marked. said is the squashed prompt.
func lastQuestion(turn []turnLine, columns int, said string) (question string, options []string, ok bool) {
	for i, line := range slices.Backward(turn) {
		value, found := marked(line.text)
		if !found || !line.own {
			continue
		}
		question, next := line.rest(value, turn[i+1:], columns)
		question = plainText(question)
		if !isQuestion(question) || said != "" && strings.Contains(said, squash(decisionMark+question)) && !line.proven {
			return "", nil, false
		}
		return capped(question, questionCap), listed(turn[i+1+next:], columns), true
	}
	return "", nil, false
}

// turnLine is a line of the conversation without what the client puts before it.
type turnLine struct {
	text   string
	column int  // where the text begins
	own    bool // it is at the place of an answer's paragraphs: no tool, no quote, no code
	proven bool // the head of its block is on the screen, so that it is no prompt
}

// marked is what follows the mark at the beginning of a paragraph or of a list's item.
func marked(text string) (string, bool) {
	if bullet := decisionBullet().FindString(text); bullet != "" {
		text = text[len(bullet):]
	}
	text = strings.TrimLeft(text, "*_`")
	if len(text) < len(decisionMark) || !strings.EqualFold(text[:len(decisionMark)], decisionMark) {
		return "", false
	}
	return strings.TrimLeft(text[len(decisionMark):], "*_` "), true
}

// rest joins a paragraph that the client wrapped: a line goes on below if the first word there had no more room. It
// also says how many of the lines below belong to it.
func (l turnLine) rest(text string, below []turnLine, columns int) (string, int) {
	last := l
	for i, next := range below {
		word, _, _ := strings.Cut(next.text, " ")
		if next.text == "" || next.column < l.column || next.column > l.column+4 ||
			last.column+width(last.text)+1+width(word) <= columns-wrapMargin || decisionBullet().MatchString(next.text) {
			return text, i
		}
		text += " " + next.text
		last = next
	}
	return text, len(below)
}

// listed are the options in the list that comes next.
func listed(below []turnLine, columns int) []string {
	var options []string
	for i := 0; i < len(below) && len(options) < optionsCap; {
		line := below[i]
		bullet := decisionBullet().FindString(line.text)
		switch {
		case line.text == "", len(options) == 0 && strings.HasSuffix(line.text, ":") && line.own:
			i++ // a heading
			continue
		case bullet == "":
			return options
		}
		option, more := line.rest(line.text[len(bullet):], below[i+1:], columns)
		if option = plainText(option); option != "" {
			options = append(options, capped(option, optionCap))
		}
		i += 1 + more
	}
	return options
}

// isQuestion says whether a value asks anything: not when it is empty, a placeholder of a template, or says that there
// is nothing to decide.
func isQuestion(value string) bool {
	if placeholder().MatchString(value) {
		return false
	}
	word := strings.ToLower(strings.TrimFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
	switch word {
	case "", "n/a", "na", "no", "nil", "null", "question", "your question", "the question":
		return false
	}
	if strings.Contains(value, "?") {
		return true
	}
	for _, nothing := range []string{"none", "n/a", "nothing", "no decision", "not needed", "not applicable"} {
		if after, ok := strings.CutPrefix(word, nothing); ok && !startsWithLetter(after) {
			return false
		}
	}
	return true
}

func startsWithLetter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

// plainText is a value without the marks of emphasis around it.
func plainText(s string) string { return strings.TrimSpace(strings.Trim(strings.TrimSpace(s), "*_`")) }

// squash is a text without blanks and marks, so that it is the same however a client wraps and renders it.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("*_`┃│❯›", r) || unicode.IsControl(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}
