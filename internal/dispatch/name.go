package dispatch

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"vx/internal/task"
)

const (
	titleWidth  = 60 // of a title that is made from a prompt, in characters
	branchWidth = 40 // of the part of a branch's name that comes from the title
	nameWidth   = 32 // of an agent's name in herdr
)

// titleOf is a prompt's first line, as far as it makes a title.
func titleOf(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	line = strings.Join(strings.Fields(line), " ")
	if utf8.RuneCountInString(line) <= titleWidth {
		return line
	}
	cut := string([]rune(line)[:titleWidth])
	if at := strings.LastIndexByte(cut, ' '); at > titleWidth/2 {
		cut = cut[:at]
	}
	return cut + "…"
}

// slug is a title as a part of names: lower-case letters, digits and hyphens, a letter first.
func slug(title string, width int) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		r = plain(r)
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := b.String()
	if len(s) > width {
		s = s[:width]
	}
	if s = strings.Trim(s, "-"); s == "" {
		return "task"
	}
	return s
}

// plain is a letter without its accent, for the languages that have these.
func plain(r rune) rune {
	for base, accented := range map[rune]string{'a': "áàâäãåā", 'c': "çćč", 'e': "éèêëēě", 'i': "íìîïī", 'n': "ñńň", 'o': "óòôöõøō", 's': "śš", 'u': "úùûüū", 'y': "ýÿ", 'z': "źżž"} {
		if strings.ContainsRune(accented, r) {
			return base
		}
	}
	return r
}

// branchOf is the name of a new task's branch.
func branchOf(t task.Task) string { return "vx/" + slug(t.Title, branchWidth) + "-" + Short(t.ID) }

// agentOf is the name of a task's agent in herdr, where names are unique: another one after each redispatch, as the old
// one may still be there.
func agentOf(t task.Task) string {
	end := "-" + Short(t.ID)
	if n := len(t.Redispatches); n > 0 {
		end += fmt.Sprintf("-%d", n+1)
	}
	return slug(t.Title, nameWidth-len(end)) + end
}
