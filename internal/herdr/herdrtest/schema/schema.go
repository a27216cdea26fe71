// Package schema holds herdr's own description of its socket API, as herdr 0.8.2 (protocol 20) prints it, and lines that fit it.
// It is for tests: of a client, and of the fake herdr. It says nothing about what a line means, nor which comes when.
//
// herdr-api.schema.json is what `herdr api schema --json` prints, unchanged. It is the work of herdr's authors
// (github.com/herdrdev/herdr) and comes under their licence, not under that of vx.
package schema

import (
	"bytes"
	_ "embed"
	"fmt"
	"iter"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed herdr-api.schema.json
var api []byte

//go:embed fixtures.ndjson
var fixtures []byte

const file = "file:///herdr-api.schema.json"

// Kinds are the kinds of lines that the schema knows.
func Kinds() []string {
	return []string{"request", "success_response", "error_response", "event", "subscription_event"}
}

var compiled = sync.OnceValues(func() (map[string]*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(api))
	if err != nil {
		return nil, fmt.Errorf("herdr's schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(file, doc); err != nil {
		return nil, fmt.Errorf("herdr's schema: %w", err)
	}
	all := map[string]*jsonschema.Schema{}
	for _, kind := range Kinds() {
		if all[kind], err = c.Compile(file + "#/schemas/" + kind); err != nil {
			return nil, fmt.Errorf("herdr's schema of a %s: %w", kind, err)
		}
	}
	return all, nil
})

// Validate says what is wrong with a line of one of the Kinds. It fits herdrtest.Options.
func Validate(kind string, line []byte) error {
	all, err := compiled()
	if err != nil {
		return err
	}
	s := all[kind]
	if s == nil {
		return fmt.Errorf("no lines of kind %q", kind)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// Fixtures are lines that herdr and its clients send, with the kind of each.
func Fixtures() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for line := range bytes.Lines(fixtures) {
			kind, text, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
			if len(text) > 0 && !yield(string(kind), text) {
				return
			}
		}
	}
}
