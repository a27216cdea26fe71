package herdrtest

import "maps"

// What integrations report of the agent that they live in. A report of the state takes the authority from the screen.

type reportParams struct {
	PaneID      string    `json:"pane_id" need:"true"`
	Source      string    `json:"source" need:"true"`
	Agent       string    `json:"agent" need:"true"`
	State       stateWord `json:"state" need:"true"`
	Seq         *uint64   `json:"seq"`
	SessionID   *string   `json:"agent_session_id"`
	SessionPath *string   `json:"agent_session_path"`
}

// reportAgent takes a state. A report with a number that is not above the last one is too late and changes nothing.
func (s *Server) reportAgent(q reportParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	if q.Seq != nil {
		if p.hook && *q.Seq <= p.hookSeq {
			return fine()
		}
		p.hookSeq = *q.Seq
	}
	if p.agent != q.Agent {
		s.detect(p, q.Agent)
	}
	p.hook, p.hookSource = true, q.Source
	p.reportSession(q.Source, q.Agent, q.SessionID, q.SessionPath)
	s.setRaw(p, string(q.State))
	return fine()
}

// reportSession keeps the newest reference to the client's own session.
func (p *Pane) reportSession(source, agent string, id, path *string) {
	switch {
	case id != nil && *id != "":
		p.session = &sessionInfo{Source: source, Agent: agent, Kind: "id", Value: *id}
	case path != nil && *path != "":
		p.session = &sessionInfo{Source: source, Agent: agent, Kind: "path", Value: *path}
	}
}

type sessionParams struct {
	PaneID      string  `json:"pane_id" need:"true"`
	Source      string  `json:"source" need:"true"`
	Agent       string  `json:"agent" need:"true"`
	SessionID   *string `json:"agent_session_id"`
	SessionPath *string `json:"agent_session_path"`
}

func (s *Server) reportSession(q sessionParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	p.reportSession(q.Source, q.Agent, q.SessionID, q.SessionPath)
	s.notify()
	return fine()
}

type metadataParams struct {
	PaneID       string             `json:"pane_id" need:"true"`
	Source       string             `json:"source" need:"true"`
	Title        *string            `json:"title"`
	DisplayAgent *string            `json:"display_agent"`
	StateLabels  map[string]string  `json:"state_labels"`
	Tokens       map[string]*string `json:"tokens"`
	ClearTitle   bool               `json:"clear_title"`
	ClearDisplay bool               `json:"clear_display_agent"`
	ClearLabels  bool               `json:"clear_state_labels"`
}

// reportMetadata changes what is shown of an agent and not its state; subscribers of the status hear of it all the same.
func (s *Server) reportMetadata(q metadataParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	if q.Title != nil || q.ClearTitle {
		p.metaTitle = deref(q.Title)
	}
	if q.DisplayAgent != nil || q.ClearDisplay {
		p.display = deref(q.DisplayAgent)
	}
	if q.StateLabels != nil || q.ClearLabels {
		p.labels = q.StateLabels
	}
	tokens := maps.Clone(p.tokens)
	for name, value := range q.Tokens {
		if tokens == nil {
			tokens = map[string]string{}
		}
		if delete(tokens, name); value != nil {
			tokens[name] = *value
		}
	}
	p.tokens = tokens
	s.notify()
	return fine()
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

type authorityParams struct {
	PaneID string  `json:"pane_id" need:"true"`
	Source *string `json:"source"`
}

// clearAuthority gives the word back to the screen.
func (s *Server) clearAuthority(q authorityParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	if q.Source == nil || *q.Source == p.hookSource {
		p.hook, p.hookSeq = false, 0
		s.notify()
	}
	return fine()
}

type releaseParams struct {
	PaneID string `json:"pane_id" need:"true"`
	Source string `json:"source" need:"true"`
	Agent  string `json:"agent" need:"true"`
}

func (s *Server) releaseReported(q releaseParams) (any, *Error) {
	p, e := s.pane(q.PaneID)
	if e != nil {
		return nil, e
	}
	if p.hook && p.agent == q.Agent && p.hookSource == q.Source {
		s.setRaw(p, Idle)
		s.releaseAgent(p)
	}
	return fine()
}
