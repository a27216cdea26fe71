package opencode

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
)

// errForm says that an answer is not what this version answers.
var errForm = errors.New("answer is not understood")

// routes are how one major version is spoken to.
type routes struct {
	status    string                                       // which sessions are busy
	latest    url.Values                                   // asks for the latest messages only
	accepted  func(status int, data []byte) bool           // the one answer that means that a prompt was taken
	prompt    func(session string) string                  // where a prompt is posted
	messages  func(session string) string                  //
	session   func(session string) string                  //
	body      func(text string, about []byte) (any, error) // of a prompt; about is what is told of the session
	asks      bool                                         // body needs that
	busy      func(data []byte, id string) (bool, error)   //
	said      func(data []byte) ([]string, error)          // the texts of the user's messages
	directory func(data []byte, id string) (string, error) // where a session works
}

func routesOf(version string) (routes, error) {
	n, err := major(version)
	switch {
	case err != nil:
		return routes{}, err
	case n == 1:
		return first(), nil
	case n == 2:
		return second(), nil
	}
	return routes{}, fmt.Errorf("version %q is not one whose routes are known", version)
}

type object map[string]any

// first is 1.x, as 1.18.33 answers.
func first() routes {
	return routes{
		status: "/session/status",
		latest: url.Values{"limit": {"50"}}, // the last of them, oldest first
		accepted: func(status int, _ []byte) bool {
			return status == statusNoContent // and nothing else: it answers a wrong path with 200 and a web page
		},
		prompt:   func(session string) string { return "/session/" + session + "/prompt_async" },
		messages: func(session string) string { return "/session/" + session + "/message" },
		session:  func(session string) string { return "/session/" + session },
		asks:     true,
		body: func(text string, about []byte) (any, error) {
			prompt := object{"parts": []object{{"type": "text", "text": text}}}
			return prompt, keepMode(prompt, about)
		},
		busy: func(data []byte, id string) (bool, error) {
			var sessions map[string]struct{ Type string }
			if err := decode(data, &sessions); err != nil {
				return false, err
			}
			s, there := sessions[id]
			return there && s.Type != "idle", nil
		},
		said: func(data []byte) ([]string, error) {
			var messages []struct {
				Info  struct{ Role string }
				Parts []struct{ Type, Text string }
			}
			if err := decode(data, &messages); err != nil {
				return nil, err
			}
			var texts []string
			for _, m := range messages {
				for _, p := range m.Parts {
					if m.Info.Role == "user" && p.Type == "text" {
						texts = append(texts, p.Text)
					}
				}
			}
			return texts, nil
		},
		directory: func(data []byte, id string) (string, error) {
			var s struct{ ID, Directory string }
			if err := decode(data, &s); err != nil {
				return "", err
			}
			if s.ID != id {
				return "", errForm
			}
			return s.Directory, nil
		},
	}
}

// second is 2.x, as its sources have it; nobody has seen it answer.
func second() routes {
	return routes{
		status: "/api/session/active",
		latest: url.Values{"limit": {"50"}, "order": {"desc"}},
		accepted: func(status int, data []byte) bool {
			var admitted struct{ Data struct{ ID string } }
			return status == statusOK && decode(data, &admitted) == nil && admitted.Data.ID != ""
		},
		prompt:   func(session string) string { return "/api/session/" + session + "/prompt" },
		messages: func(session string) string { return "/api/session/" + session + "/message" },
		session:  func(session string) string { return "/api/session/" + session },
		body:     func(text string, _ []byte) (any, error) { return object{"text": text, "delivery": "queue"}, nil },
		busy: func(data []byte, id string) (bool, error) {
			var active struct {
				Data map[string]struct{ Type string }
			}
			if err := decode(data, &active); err != nil {
				return false, err
			}
			if active.Data == nil {
				return false, errForm
			}
			_, there := active.Data[id]
			return there, nil
		},
		said: func(data []byte) ([]string, error) {
			var page struct{ Data []struct{ Type, Text string } }
			if err := decode(data, &page); err != nil {
				return nil, err
			}
			if page.Data == nil {
				return nil, errForm
			}
			var texts []string
			for _, m := range page.Data {
				if m.Type == "user" {
					texts = append(texts, m.Text)
				}
			}
			return texts, nil
		},
		directory: func(data []byte, id string) (string, error) {
			var s struct {
				Data struct {
					ID       string
					Location struct{ Directory string }
				}
			}
			if err := decode(data, &s); err != nil {
				return "", err
			}
			if s.Data.ID != id {
				return "", errForm
			}
			return s.Data.Location.Directory, nil
		},
	}
}

// keepMode has a prompt carried out as its person would have it: by the agent and the model of the last turn. What does not
// say so, 1.x gives to its default agent, which may change files where the one before was to plan.
func keepMode(prompt object, about []byte) error {
	var s struct {
		Agent string
		Model struct{ ID, ProviderID, Variant string }
	}
	if err := decode(about, &s); err != nil {
		return err
	}
	if s.Agent != "" {
		prompt["agent"] = s.Agent
	}
	if s.Model.ID != "" && s.Model.ProviderID != "" {
		prompt["model"] = object{"providerID": s.Model.ProviderID, "modelID": s.Model.ID}
	}
	if s.Model.Variant != "" && s.Model.Variant != "default" {
		prompt["variant"] = s.Model.Variant
	}
	return nil
}

func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return errForm // the text of the error would quote what a stranger sent
	}
	return nil
}
