package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// big is a settings file of about 100 KB, most of it hooks of the user, which is what an edit has to look through.
func big() []byte {
	var b bytes.Buffer
	b.WriteString("{\n  \"permissions\": {\n    \"allow\": [\n      \"Read\"")
	for i := range 700 {
		fmt.Fprintf(&b, ",\n      \"Bash(git -C /srv/%d log --oneline \\\"%d\\\")\"", i, i)
	}
	b.WriteString("\n    ]\n  },\n  \"hooks\": {\n    \"Stop\": [")
	for i := range 400 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "\n      {\n        \"hooks\": [ { \"type\": \"command\", \"command\": \"./hooks/stop-%d.sh --quiet\" } ]\n      }", i)
	}
	b.WriteString("\n    ]\n  }\n}\n")
	return b.Bytes()
}

func bigFile(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "settings.json")
	if err := os.WriteFile(path, big(), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(big())))
	return path
}

// The yardstick of BenchmarkAdd.
func BenchmarkReadAndValidate(b *testing.B) {
	path := bigFile(b)
	for b.Loop() {
		data, err := os.ReadFile(path)
		if err != nil || !json.Valid(data) {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	path := bigFile(b)
	for b.Loop() {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := Add(data, Stop); err != nil {
			b.Fatal(err)
		}
	}
}
