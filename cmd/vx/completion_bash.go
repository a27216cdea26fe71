//go:build !windows

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// bashScript completes in bash, 3.2 included, which macOS has.
func bashScript(root *kong.Node) string {
	all := commands(root)
	values := map[string][]string{} // what is offered to the flags in whose place it may stand
	var words strings.Builder
	for _, c := range all {
		at := strings.TrimRight("vx "+c.path, " ")
		for _, f := range c.flags {
			if !f.IsBool() {
				o := bashOffer(offerOf(f.Value))
				values[o] = append(values[o], fmt.Sprintf("%q", at+" --"+f.Name))
			}
		}
		fmt.Fprintf(&words, "  %q) ", at)
		if files := c.files(); files != "" {
			fmt.Fprintf(&words, "[[ $cur == -* ]] || { %s; return; }; ", bashOffer(offer{files: files}))
		}
		fmt.Fprintf(&words, "%s ;;\n", bashOffer(offer{words: c.words()}))
	}
	var after strings.Builder
	for _, o := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&after, "  %s) %s; return ;;\n", strings.Join(values[o], " | "), o)
	}
	known := paths(all)
	for i, path := range known {
		known[i] = fmt.Sprintf("%q", "vx "+path)
	}
	return fmt.Sprintf(bashFrame, bashOffer(offer{files: "command"}), bashOffer(offer{files: "files"}),
		strings.Join(known, " | "), after.String(), words.String())
}

// bashFrame finds the command at which the cursor is, $at. Bash splits words at "=".
const bashFrame = `# bash completion for vx: source <(vx completion bash)
_vx() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=vx i IFS=$' \t\n'
  COMPREPLY=()
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      if [[ $at == "vx run" && $i == $((COMP_CWORD - 1)) ]]; then
        %s
      else
        %s
      fi
      return
    fi
    case "$at ${COMP_WORDS[i]}" in
    %s)
      at="$at ${COMP_WORDS[i]}" ;;
    esac
  done
  case "$at $prev" in
%s  esac
  case "$at" in
%s  esac
}
complete -F _vx vx
`

// bashOffer is the statement that fills COMPREPLY.
func bashOffer(o offer) string {
	switch {
	case len(o.words) > 0:
		return fmt.Sprintf("COMPREPLY=($(compgen -W %q -- \"$cur\"))", strings.Join(o.words, " "))
	case o.files == "dirs":
		return "compopt -o filenames 2>/dev/null; IFS=$'\\n' COMPREPLY=($(compgen -d -- \"$cur\"))"
	case o.files == "files":
		return "compopt -o filenames 2>/dev/null; IFS=$'\\n' COMPREPLY=($(compgen -f -- \"$cur\"))"
	case o.files == "command":
		return "COMPREPLY=($(compgen -c -- \"$cur\"))"
	}
	return ":"
}
