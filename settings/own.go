package settings

import (
	"regexp"
	"strings"
	"sync"
)

// isOwn reports whether a command under hooks.Stop is vx's: the wrapper, or an earlier form, which was vx or vexillum with
// any path before it, quoted or not, then "sentinel await" or "sentinel drain", and nothing after. Any other command is
// the user's, whatever it mentions.
func isOwn(command string) bool {
	if command == Command {
		return true
	}
	program, ok := strings.CutSuffix(command, " sentinel await")
	if !ok {
		program, ok = strings.CutSuffix(command, " sentinel drain")
	}
	if !ok {
		return false
	}
	path, ok := oneWord(program)
	if !ok {
		return false
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	return base == "vx" || base == "vexillum"
}

// assigns says that a shell takes a word for an assignment: an = behind a name. A path may have an = as well. It is
// compiled at the first use: the hook starts with every turn, and does not use it.
var assigns = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z_0-9]*\+?=`) })

// oneWord returns what s says if a shell reads it as one plain word: the path of a program. What chains, redirects,
// assigns, substitutes or comments out commands makes it the user's own construction. Variables are paths: "$HOME/bin/vx".
func oneWord(s string) (string, bool) {
	if strings.Contains(s, "$(") || strings.ContainsAny(s, "`\n\r\t") || strings.HasPrefix(s, "#") || assigns().MatchString(s) {
		return "", false
	}
	var word strings.Builder
	quote := byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			word.WriteByte(s[i])
		case quote == 0 && strings.IndexByte(" ;&|<>()", c) >= 0:
			return "", false
		default:
			word.WriteByte(c)
		}
	}
	return word.String(), quote == 0
}
