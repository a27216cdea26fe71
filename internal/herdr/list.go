package herdr

import (
	"fmt"
	"sync"
)

// listing remembers the last list of agents, as herdr wrote each and as it was decoded: most are in the next list as
// they were, to the byte, and need no decoding. A list of a thousand is asked for every few seconds.
type listing struct {
	mu   sync.Mutex
	last decoded
}

// decoded is a list. The strings of each agent are parts of its raw text.
type decoded struct {
	raw    []string
	agents []Agent
}

// decode reads an answer to agent.list. Where nothing has changed, the list is the last one itself.
func (l *listing) decode(line []byte) ([]Agent, error) {
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	now, err := decodeList(line, last)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.last = now
	l.mu.Unlock()
	return now.agents, nil
}

// decodeList reads the answer in one go. Where it is not as expected, open finds the words for it.
func decodeList(line []byte, last decoded) (decoded, error) {
	s := scanner{in: line}
	l := list{scanner: &s, last: last}
	s.object(l.answer)
	if s.whole() && l.right() {
		return l.read(), nil
	}
	if _, err := open(line, "agent.list", "agent_list"); err != nil {
		return decoded{}, err
	}
	return decoded{}, fmt.Errorf("%w: no list of agents", ErrGarbage)
}

// list is an answer to agent.list on the way.
type list struct {
	*scanner
	last     decoded
	now      decoded // begun where it differs from the last: until then it is that
	n        int     // agents so far
	id, kind span
	listed   bool
	nameless bool // an agent has no pane
}

func (l *list) right() bool {
	return l.listed && !l.nameless && l.is(l.id, "agent.list") && l.is(l.kind, "agent_list")
}

func (l *list) is(s span, want string) bool { return string(l.in[s.from:s.to]) == want }

// read is the list at its end.
func (l *list) read() decoded {
	if l.now.raw != nil {
		return l.now
	}
	return decoded{l.last.raw[:l.n:l.n], l.last.agents[:l.n:l.n]}
}

func (l *list) answer(key []byte) {
	switch string(key) {
	case "id":
		l.id = l.text()
	case "result":
		l.object(l.result)
	default:
		l.skip()
	}
}

func (l *list) result(key []byte) {
	switch string(key) {
	case "type":
		l.kind = l.text()
	case "agents":
		l.listed = l.peek() == '['
		l.array(l.element)
	default:
		l.skip()
	}
}

// element takes an agent. The text of a known one is a whole value: where the line goes on with it, it is that agent.
func (l *list) element() {
	i := l.n
	l.n++
	if l.peek(); i < len(l.last.raw) && l.goesOn(l.last.raw[i]) {
		l.at += len(l.last.raw[i])
		if l.now.raw != nil {
			l.add(l.last.raw[i], l.last.agents[i])
		}
		return
	}
	if l.now.raw == nil {
		room := max(len(l.last.raw), i+1)
		l.now.raw = append(make([]string, 0, room), l.last.raw[:i]...)
		l.now.agents = append(make([]Agent, 0, room), l.last.agents[:i]...)
	}
	raw, agent := l.agent()
	l.nameless = l.nameless || agent.PaneID == ""
	l.add(raw, agent)
}

func (l *list) add(raw string, agent Agent) {
	l.now.raw, l.now.agents = append(l.now.raw, raw), append(l.now.agents, agent)
}

func (l *list) goesOn(raw string) bool {
	rest := l.in[l.at:]
	return len(rest) >= len(raw) && string(rest[:len(raw)]) == raw
}

// agent takes an agent. Its text is copied in one piece, and its strings are cut from the copy.
func (s *scanner) agent() (raw string, a Agent) {
	var texts [14]span
	into := [...]*string{
		&a.TerminalID, &a.Name, &a.Kind, (*string)(&a.Status), &a.WorkspaceID, &a.TabID, &a.PaneID, &a.Title, &a.CWD,
		&a.ForegroundCWD, &a.Session.Source, &a.Session.Agent, &a.Session.Kind, &a.Session.Value,
	}
	s.peek()
	from := s.at
	s.object(func(key []byte) {
		switch string(key) {
		case "terminal_id":
			texts[0] = s.text()
		case "name":
			texts[1] = s.text()
		case "agent":
			texts[2] = s.text()
		case "agent_status":
			texts[3] = s.text()
		case "workspace_id":
			texts[4] = s.text()
		case "tab_id":
			texts[5] = s.text()
		case "pane_id":
			texts[6] = s.text()
		case "terminal_title":
			texts[7] = s.text()
		case "cwd":
			texts[8] = s.text()
		case "foreground_cwd":
			texts[9] = s.text()
		case "agent_session":
			s.session(texts[10:])
		case "state_change_seq":
			a.Seq, a.HasSeq = s.number()
		case "launch_pending":
			a.LaunchPending = s.flag()
		case "interactive_ready":
			a.InteractiveReady = s.flag()
		case "screen_detection_skipped":
			a.ScreenDetectionSkipped = s.flag()
		default:
			s.skip()
		}
	})
	raw = string(s.in[from:s.at])
	for i, text := range texts {
		*into[i] = text.cut(raw, from)
	}
	return raw, a
}

func (s *scanner) session(texts []span) {
	s.object(func(key []byte) {
		switch string(key) {
		case "source":
			texts[0] = s.text()
		case "agent":
			texts[1] = s.text()
		case "kind":
			texts[2] = s.text()
		case "value":
			texts[3] = s.text()
		default:
			s.skip()
		}
	})
}
