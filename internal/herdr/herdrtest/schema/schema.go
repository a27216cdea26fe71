// Package schema holds herdr's own description of its socket API, as herdr 0.8.2 (protocol 20) prints it, and lines that fit it.
// It is for tests: of a client, and of the fake herdr. It says nothing about what a line means, nor which comes when.
//
// herdr-api.schema.json is what `herdr api schema --json` prints, unchanged. It is the work of herdr's authors
// (github.com/herdrdev/herdr) and comes under their licence, not under that of vx.
package schema

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
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
	for _, name := range Kinds() {
		if all[name], err = c.Compile(file + "#/schemas/" + name); err != nil {
			return nil, fmt.Errorf("herdr's schema of a %s: %w", name, err)
		}
	}
	return all, nil
})

// Validate says what is wrong with a line of one of the Kinds. It fits herdrtest.Options.
func Validate(of string, line []byte) error {
	all, err := compiled()
	if err != nil {
		return err
	}
	s := all[of]
	if s == nil {
		return fmt.Errorf("no lines of kind %q", of)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	err = s.Validate(v)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		if why, _ := reasons(invalid); len(why) > 0 {
			return errors.New(strings.Join(why, "; "))
		}
	}
	return err
}

// reasons are what is wrong, without the dozens of methods and types that a line does not claim to be: another is true of an
// alternative that is for another one.
func reasons(e *jsonschema.ValidationError) (why []string, another bool) {
	if len(e.Causes) == 0 {
		at := e.InstanceLocation
		_, constant := e.ErrorKind.(*kind.Const)
		return []string{e.Error()}, constant && len(at) > 0 && slices.Contains([]string{"method", "type"}, at[len(at)-1])
	}
	_, oneOf := e.ErrorKind.(*kind.OneOf)
	if !oneOf {
		for _, cause := range e.Causes {
			some, other := reasons(cause)
			why, another = append(why, some...), another || other
		}
		return why, another
	}
	for _, cause := range e.Causes {
		if some, other := reasons(cause); !other {
			why = append(why, some...)
		}
	}
	if len(why) == 0 {
		why = []string{"at '/" + strings.Join(e.InstanceLocation, "/") + "': no such method or type"}
	}
	return why, false
}

// Fixtures are lines that herdr and its clients send, with the kind of each.
func Fixtures() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for line := range bytes.Lines(fixtures) {
			of, text, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
			if len(text) > 0 && !yield(string(of), text) {
				return
			}
		}
	}
}
