package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// The versions of Claude Code that vx was measured with; see docs/claude-code.md.
var oldest, newest = release{2, 1, 197}, release{2, 1, 332}

// release is a version of the client.
type release [3]int

func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r[0], r[1], r[2]) }

func (r release) before(other release) bool {
	for i := range r {
		if r[i] != other[i] {
			return r[i] < other[i]
		}
	}
	return false
}

// clientLimit is how long the client may take to tell its version.
const clientLimit = 5 * time.Second

// client asks the client on PATH for its version.
func client(ctx context.Context, _ *Patient) []Result {
	path, err := exec.LookPath("claude")
	if err != nil {
		return info("not on PATH, so its version is not known")
	}
	return askVersion(ctx, path, clientLimit)
}

func askVersion(ctx context.Context, path string, limit time.Duration) []Result {
	var out head
	cmd := exec.Command(path, "--version")
	cmd.Dir = os.TempDir()
	cmd.Stdout = &out
	c, err := start(cmd)
	if err != nil {
		return info("its version could not be asked for: %v", err)
	}
	ended := c.await(ctx, limit)
	if err := c.finish(); err != nil {
		return info("its version could not be asked for: %v", err)
	}
	if !ended {
		return info("claude --version took longer than %s", limit)
	}
	return judge(out.String())
}

var versionLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})`)
})

// judge compares what the client printed with what was measured.
func judge(printed string) []Result {
	m := versionLine().FindStringSubmatch(printed)
	if m == nil {
		return info("claude --version printed %.60q, which is no version", printed)
	}
	var r release
	for i := range r {
		r[i], _ = strconv.Atoi(m[i+1]) // digits, and few
	}
	switch {
	case r.before(oldest):
		return warning("claude update", "%s, older than %s, the oldest that vx was measured with", r, oldest)
	case r == oldest, r == newest:
		return ok("%s", r)
	}
	return info("%s; vx was measured with %s and %s", r, oldest, newest)
}
