package claude

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"vx/internal/proc"
)

func procStart(id proc.ID) string { return strconv.FormatUint(id.Start, 10) }

func TestAClientMayHaveAConfigurationDirectoryOfItsOwn(t *testing.T) {
	config(t)
	own := t.TempDir()
	if err := os.Mkdir(filepath.Join(own, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "600")
	cmd.Env = append(os.Environ(), "CLAUDE_CONFIG_DIR="+own)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	id, err := proc.Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(own, "sessions", recordName(id.PID)), record(id, "its own"))
	if s, ok := SessionOf(id); !ok || s.SessionID != "its own" {
		t.Errorf("%+v, %v", s, ok)
	}
}
