package opencode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"vx/internal/atomicfile"
)

// ErrNoService says that no service of 2.x runs for this user, as far as its own record tells.
var ErrNoService = errors.New("no service runs")

// Service is the service that 2.x keeps for this user. Its record can outlive it, and its port can pass to another program,
// so what answers there has to be the process that the record names.
func Service(ctx context.Context) (Server, error) {
	path, err := servicePath()
	if err != nil {
		return Server{}, fmt.Errorf("opencode: %w", err)
	}
	s, pid, err := recorded(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoService
	}
	if err == nil {
		err = s.is(ctx, pid)
	}
	if err != nil {
		return Server{}, fmt.Errorf("opencode: service in %s: %w", path, err)
	}
	return s, nil
}

func servicePath() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "opencode", "service.json"), nil
}

// recorded reads the record. It says where a password is sent, so nobody else may have been able to write it.
func recorded(path string) (Server, int, error) {
	data, info, err := atomicfile.ReadPlain(path, 64<<10)
	if err != nil {
		return Server{}, 0, err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return Server{}, 0, errors.New("others may have written it")
	}
	var record struct {
		URL, Version, Password string
		PID                    int
	}
	if err := decode(data, &record); err != nil || record.PID <= 0 {
		return Server{}, 0, errForm
	}
	return Server{URL: record.URL, Version: record.Version, Password: record.Password}, record.PID, nil
}

// is finds out whether the process with this pid answers for the server.
func (s *Server) is(ctx context.Context, pid int) error {
	if s.Version == "" {
		s.Version = "2" // only 2.x has a service
	}
	c, err := New(*s)
	if err != nil {
		return err
	}
	data, err := c.get(ctx, "/api/info", nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoService, err)
	}
	var info struct {
		PID     int
		Version string
	}
	if err := decode(data, &info); err != nil {
		return err
	}
	if info.PID != pid {
		return fmt.Errorf("%w: process %d answers for %d", ErrNoService, info.PID, pid)
	}
	if info.Version != "" {
		s.Version = info.Version // it may have been replaced under its record
	}
	return nil
}
