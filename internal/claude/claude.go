// Package claude reads what Claude Code leaves on disk: session records, transcripts, the record of trusted folders.
// It never writes there, so a crash leaves nothing. It is not for settings files, and starts no client. The formats are
// the client's own and may change: what does not parse is "unknown", never proof. docs/claude-code.md has what was
// measured, testdata/transcripts what was recorded.
package claude

import (
	"fmt"
	"os"
	"path/filepath"
)

// ConfigDir is $CLAUDE_CONFIG_DIR, else ~/.claude.
func ConfigDir() (string, error) {
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("claude's directory: %w", err)
	}
	return filepath.Join(home, ".claude"), nil
}
