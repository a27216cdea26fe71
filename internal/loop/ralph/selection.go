package ralph

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"vx/internal/wake"
)

const (
	maxSelection = 32 << 10 // bytes
	maxName      = 200      // characters of a task's or a spec's name
)

// selection is what select has printed.
type selection struct {
	Status string `json:"status"` // "work", "plan" or "none"
	Spec   string `json:"spec"`
	Epic   string `json:"epic"` // the older name of spec
	Task   string `json:"task"`
	Reason string `json:"reason"`

	text string // as it was printed, without the space around it
}

// name is what attempts are counted by.
func (s selection) name() string {
	if s.Task != "" {
		return s.Task
	}
	return s.Spec
}

// parse reads a selection: the JSON of `flowctl next --json`, or one line that names a task.
func parse(text string) (selection, error) {
	text = strings.TrimSpace(text)
	s := selection{Status: "work", Task: text}
	switch {
	case text == "" || text == "none":
		return selection{Status: "none", text: text}, nil
	case text[0] == '{':
		s = selection{}
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return s, fmt.Errorf("it prints JSON that cannot be read: %w", err)
		}
		if s.Spec == "" {
			s.Spec = s.Epic
		}
	case strings.Contains(text, "\n"):
		return s, errors.New("it prints more than one line")
	}
	s.text = text
	for _, name := range []string{s.Spec, s.Task} {
		if name != wake.Clean(name) || strings.ContainsAny(name, "\n\t") || utf8.RuneCountInString(name) > maxName {
			return s, fmt.Errorf("it prints a name that is not one printable line of at most %d characters", maxName)
		}
	}
	switch {
	case s.Status != "work" && s.Status != "plan" && s.Status != "none":
		return s, fmt.Errorf("its status is %q, and not work, plan or none", wake.Clean(s.Status[:min(len(s.Status), 40)]))
	case s.Status != "none" && s.name() == "":
		return s, fmt.Errorf("it prints %s without a spec or a task", s.Status)
	}
	return s, nil
}
