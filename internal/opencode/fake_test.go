package opencode

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	ses      = "ses_22ef2767600147OMIk"
	password = "not-a-password"
)

// A fake is an OpenCode of one version with one session, to the routes that are known of it.
type fake struct {
	*httptest.Server
	version   string
	directory string
	instead   http.HandlerFunc // answers prompts in its place, if it is set

	mu    sync.Mutex
	said  []string // the texts that were accepted
	busy  bool
	asked []string
	mode  string // what it tells of its session beside where that is, as members of an object
	body  string // of the last prompt
}

func start(t *testing.T, version string) *fake {
	t.Helper()
	f := &fake{version: version, directory: t.TempDir()}
	mux := http.NewServeMux()
	if strings.HasPrefix(version, "2") {
		f.serve2(mux)
	} else {
		f.serve1(mux)
	}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.asked = append(f.asked, r.Method+" "+r.URL.Path)
		f.mu.Unlock()
		if user, pass, _ := r.BasicAuth(); user != DefaultUser || pass != password {
			http.Error(w, `{"_tag":"UnauthorizedError"}`, http.StatusUnauthorized)
			return
		}
		if f.instead != nil && r.Method == http.MethodPost {
			f.instead(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(Server{URL: f.URL, Version: f.version, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// posts are the prompts that came.
func (f *fake) posts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.asked), func(asked string) bool { return strings.HasPrefix(asked, "GET ") })
}

// known answers 404 for every session but the one.
func (f *fake) known(answer func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != ses {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"name":"NotFoundError"}`)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		answer(w, r)
	}
}

func send(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

func (f *fake) serve1(mux *http.ServeMux) {
	mux.HandleFunc("POST /session/{id}/prompt_async", f.known(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Parts []struct{ Type, Text string } }
		data, _ := io.ReadAll(r.Body)
		f.body = string(data)
		if json.Unmarshal(data, &body) != nil || len(body.Parts) != 1 || body.Parts[0].Type != "text" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		f.said = append(f.said, body.Parts[0].Text)
		w.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("GET /session/status", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		status := object{}
		if f.busy {
			status[ses] = object{"type": "busy"}
		}
		send(w, status)
	})
	mux.HandleFunc("GET /session/{id}", f.known(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id":%q,%s"directory":%q}`, ses, f.mode, f.directory)
	}))
	mux.HandleFunc("GET /session/{id}/message", f.known(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		page := []object{{"info": object{"role": "assistant"}, "parts": []object{{"type": "text", "text": "quoted"}}}}
		for _, text := range f.said {
			page = append(page, object{"info": object{"role": "user"}, "parts": []object{{"type": "text", "text": text}}})
		}
		send(w, page)
	}))
	// 1.x has this one too, and what it takes is shown to nobody.
	mux.HandleFunc("POST /api/session/{id}/prompt", func(w http.ResponseWriter, _ *http.Request) { send(w, object{"data": object{"id": "msg_x"}}) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html></html>") })
}

func (f *fake) serve2(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/info", func(w http.ResponseWriter, _ *http.Request) {
		send(w, object{"version": f.version, "pid": os.Getpid(), "urls": []string{f.URL}, "paths": object{"tmp": "/tmp"}})
	})
	mux.HandleFunc("POST /api/session/{id}/prompt", f.known(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Text, Delivery string }
		if json.NewDecoder(r.Body).Decode(&body) != nil || body.Text == "" || body.Delivery != "queue" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		f.said = append(f.said, body.Text)
		send(w, object{"data": object{"id": "msg_1", "sessionID": ses}})
	}))
	mux.HandleFunc("GET /api/session/active", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		active := object{}
		if f.busy {
			active[ses] = object{"type": "running"}
		}
		send(w, object{"data": active})
	})
	mux.HandleFunc("GET /api/session/{id}", f.known(func(w http.ResponseWriter, _ *http.Request) {
		send(w, object{"data": object{"id": ses, "location": object{"directory": f.directory}}})
	}))
	mux.HandleFunc("GET /api/session/{id}/message", f.known(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("order") != "desc" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		page := []object{{"type": "assistant", "content": []object{{"type": "text", "text": "quoted"}}}}
		for _, text := range f.said {
			page = append(page, object{"type": "user", "text": text})
		}
		send(w, object{"data": page, "cursor": object{}})
	}))
}
