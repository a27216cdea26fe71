package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// decode reads a record. A file whose record is another task's is not this task's.
func decode(data []byte, id string) (Task, error) {
	var t Task
	if err := json.Unmarshal(data, &t); err != nil {
		return t, err
	}
	if data = bytes.TrimSpace(data); data[0] != '{' {
		return t, errors.New("not a JSON object")
	}
	if t.ID == "" {
		t.ID = id
	}
	if t.ID != id {
		return t, fmt.Errorf("it says that it is task %.40q", t.ID)
	}
	if t.Status == "" {
		return t, errors.New("no status")
	}
	return t, nil
}

// encode writes a record, with those fields of the old one that this build does not know.
func encode(t Task, old []byte) ([]byte, error) {
	data, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	if old != nil {
		data = merge(reflect.TypeFor[Task](), old, data)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// merge is the new value of a type with the fields of the old one that the type has none for: in an object itself, in the
// objects within it, and in those elements of its arrays that are still there.
func merge(t reflect.Type, old, new json.RawMessage) json.RawMessage {
	switch t.Kind() {
	case reflect.Pointer:
		return merge(t.Elem(), old, new)
	case reflect.Struct:
		return mergeObject(t, old, new)
	case reflect.Slice:
		return mergeArray(t.Elem(), old, new)
	}
	return new
}

func mergeObject(t reflect.Type, old, new json.RawMessage) json.RawMessage {
	var was, is map[string]json.RawMessage
	if json.Unmarshal(old, &was) != nil || json.Unmarshal(new, &is) != nil || was == nil || is == nil {
		return new // a time, or nothing to keep
	}
	out := []byte{'{'}
	add := func(name string, value json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(name)
		out = append(append(append(out, key...), ':'), value...)
	}
	known := map[string]bool{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[strings.ToLower(name)] = true
		value, ok := is[name]
		if !ok {
			continue
		}
		if before, ok := was[name]; ok {
			value = merge(f.Type, before, value)
		}
		add(name, value)
	}
	for _, name := range sorted(was) {
		// In whatever case a name is written, it was read as the field that it is.
		if !known[strings.ToLower(name)] {
			add(name, was[name])
		}
	}
	return append(out, '}')
}

func mergeArray(t reflect.Type, old, new json.RawMessage) json.RawMessage {
	var was, is []json.RawMessage
	if json.Unmarshal(old, &was) != nil || json.Unmarshal(new, &is) != nil {
		return new
	}
	for i := range is {
		for j, before := range was {
			if same(t, before, is[i]) {
				is[i] = merge(t, before, is[i])
				was = append(was[:j:j], was[j+1:]...)
				break
			}
		}
	}
	out, err := json.Marshal(is)
	if err != nil {
		return new
	}
	return out
}

// same reports whether two values of a type say the same in the fields that it has.
func same(t reflect.Type, a, b json.RawMessage) bool {
	v := reflect.New(t)
	if json.Unmarshal(a, v.Interface()) != nil {
		return false
	}
	data, err := json.Marshal(v.Interface())
	return err == nil && bytes.Equal(data, b)
}

func sorted(m map[string]json.RawMessage) []string { return slices.Sorted(maps.Keys(m)) }
