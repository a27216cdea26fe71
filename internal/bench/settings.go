//go:build !windows

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"vx/settings"
)

// settings measures the edit of a large settings file, from the disk to the new bytes.
func (b *bench) settings() error {
	path := filepath.Join(b.scratch, "settings.json")
	data := large(100 << 10)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	edit := func(data []byte) error {
		out, _, err := settings.Add(data, settings.Stop)
		if err == nil && len(out) <= len(data) {
			err = errors.New("settings: nothing was added")
		}
		return err
	}
	validate := func(data []byte) error {
		if !json.Valid(data) {
			return errors.New("settings: not valid")
		}
		return nil
	}
	var took [2][]time.Duration
	for range b.pick(300, 100) {
		for i, do := range []func([]byte) error{validate, edit} {
			began := time.Now()
			data, err := os.ReadFile(path)
			if err == nil {
				err = do(data)
			}
			took[i] = append(took[i], time.Since(began))
			if err != nil {
				return err
			}
		}
	}
	valid, edited := median(took[0]), median(took[1])
	b.add(atMost("settings", fmt.Sprintf("reading and editing settings of %d KB: %s", len(data)>>10, show(edited)),
		"reading them and json.Valid: "+show(valid), ratio(edited, valid), 10, 3))
	return nil
}

// large makes settings of at least so many bytes: permissions, and hooks of the user's own.
func large(size int) []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\"")
	for i := 0; b.Len() < size/2; i++ {
		fmt.Fprintf(&b, ",\n      \"Bash(git -C /srv/%d log --oneline \\\"%d\\\")\"", i, i)
	}
	b.WriteString("\n    ]\n  },\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [ { \"type\": \"command\", \"command\": \"./stop.sh\" } ] }")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, ",\n      {\n        \"hooks\": [ { \"type\": \"command\", \"command\": \"./hooks/stop-%d.sh --quiet\" } ]\n      }", i)
	}
	b.WriteString("\n    ]\n  }\n}\n")
	return b.Bytes()
}
