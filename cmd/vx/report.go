//go:build !windows

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"vx/internal/lock"
)

// Exit statuses. 2 is not among them but for vx loop green; see the package's doc.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 80
)

// stdio is where a command reads and prints. A nil err swallows.
type stdio struct{ in, out, err *os.File }

// errw is stderr as a writer.
func (s stdio) errw() io.Writer {
	if s.err == nil {
		return io.Discard
	}
	return s.err
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// exitStatus is returned by a command that has said everything already and only wants its status passed on.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// json prints v as one line of JSON.
func (s stdio) json(v any) error { return encode(s.out, v) }

// encode prints v as one line of JSON. What is in it goes to programs, not into web pages: < stays as it is.
func encode(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// hinted is an error that knows the command, or the sentence, that mends it.
type hinted interface {
	error
	Hint() string
}

// usageError is a command line that is not understood. Commands return it from Validate or Run.
type usageError struct{ what, hint string }

func (e *usageError) Error() string { return e.what }
func (e *usageError) Hint() string  { return e.hint }

type internalError struct {
	panicked any
	stack    []byte
}

func (e *internalError) Error() string { return fmt.Sprintf("internal error: %v", e.panicked) }
func (e *internalError) Hint() string {
	return "please report this, with what follows\n" + string(e.stack)
}

// report prints an error as one line and its hint as another, and returns the exit status that goes with it.
func report(std stdio, err error) int {
	if err == nil || errors.Is(err, errHelp) {
		return exitFine
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	status, hint, what := exitFailed, "", err.Error()
	if h, ok := errors.AsType[hinted](err); ok {
		hint = h.Hint()
	}
	if hint == "" {
		hint = remedy(err)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		status = exitUsage
	}
	if p, ok := errors.AsType[*kong.ParseError](err); ok {
		status = exitUsage
		command := "vx"
		if n := p.Context.Selected(); n != nil {
			command = n.FullPath()
			if n.Path() == "loop green" {
				status = exitLoopUsage
			}
			what = n.Path() + ": " + strings.TrimPrefix(what, n.Path()+": ") // kong names the command in some
			for _, arg := range n.Positional {
				what = strings.ReplaceAll(what, arg.ShortSummary(), strings.ToUpper(arg.Name))
			}
		}
		if hint == "" {
			hint = command + " --help"
		}
	}
	fmt.Fprintf(std.errw(), "vx: %s\n", printable(what))
	if hint != "" {
		fmt.Fprintf(std.errw(), "hint: %s\n", hint)
	}
	return status
}

// remedy is what can be done about trouble that is the machine's, "" for any other.
func remedy(err error) string {
	switch {
	case errors.Is(err, lock.ErrHeld):
		return "another vx is at it: try again; one that was stopped must go on (fg) or end first"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on the disk, then try again"
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EMFILE):
		return "vx doctor"
	}
	return ""
}
