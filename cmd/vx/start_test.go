package main

import (
	"bufio"
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What a package makes at its start is paid for by each hook that ends at once and by each await that waits: a regular
// expression takes 10 KB and 30 µs.
func TestNoPackageMakesMuchAtTheStart(t *testing.T) {
	const most = 4 << 10
	cmd := vx(t, "version")
	cmd.Env = append(cmd.Env, "GODEBUG=inittrace=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	inits := regexp.MustCompile(`^init (vx/\S+) @.* (\d+) bytes, \d+ allocs$`)
	seen := 0
	for lines := bufio.NewScanner(&stderr); lines.Scan(); {
		m := inits.FindStringSubmatch(lines.Text())
		if m == nil || m[1] == "vx/cmd/vx" || strings.Contains(m[1], "herdrtest") {
			continue // of the tests
		}
		seen++
		if n, err := strconv.Atoi(m[2]); err != nil || n > most {
			t.Errorf("%s makes %s bytes, want %d at most", m[1], m[2], most)
		}
	}
	if seen == 0 {
		t.Error("no package's start is told")
	}
}
