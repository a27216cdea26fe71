package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"vx/internal/camp"
	"vx/internal/lock"
	"vx/internal/task"
)

// Land merges a finished task's branch into its base. What cannot be merged whole leaves everything as it was.
func (d *Desk) Land(ctx context.Context, id string) (r Result, err error) {
	t, err := d.tasks().Get(id)
	if err != nil {
		return r, err
	}
	if !t.Status.Prompts() {
		return r, wrong(t, "only one that is done, shipped or unconfirmed can be landed")
	}
	if err := d.stands(t); err != nil {
		return r, err
	}
	landed, err := d.land(ctx, t)
	if err != nil {
		return r, refused(t, err)
	}
	r.Task, err = d.tasks().Update(context.WithoutCancel(ctx), t.ID, t.Status, to(task.Landed))
	if conflict, ok := errors.AsType[*task.Conflict](err); ok {
		// The merge stands, whatever has become of the task.
		r.warn("it was merged, and is %s by now: what its soldier adds is to be landed again", conflict.Is)
		r.Task, err = d.tasks().Get(t.ID)
	}
	if err != nil {
		return r, fmt.Errorf("merged %s into %s, but: %w", t.Camp.Branch, landed.Into, err)
	}
	r.Did = fmt.Sprintf("landed %s %s: merged %s into %s, which is at %s now", t.Kind, Short(t.ID), commits(landed.Commits), landed.Into, short(landed.Commit))
	r.Next = "vx strike " + Short(t.ID) + " removes its camp"
	return r, nil
}

// land merges one task at a time: git's merges in one working tree get into each other's way.
func (d *Desk) land(ctx context.Context, t task.Task) (camp.Landed, error) {
	l, err := lock.Wait(ctx, d.Project.Join("tasks", ".land.lock"))
	if err != nil {
		return camp.Landed{}, fmt.Errorf("land: %w", err)
	}
	defer l.Unlock()
	return d.campOf(t).Land(ctx)
}

// Ship pushes a finished task's branch and opens a pull request for it, where gh is installed.
func (d *Desk) Ship(ctx context.Context, id string) (r Result, err error) {
	t, err := d.tasks().Get(id)
	if err != nil {
		return r, err
	}
	if t.Status != task.Done {
		return r, wrong(t, "only one that is done can be shipped")
	}
	if err := d.stands(t); err != nil {
		return r, err
	}
	remote, err := d.campOf(t).Push(ctx)
	if err != nil {
		return r, refused(t, err)
	}
	did := fmt.Sprintf("pushed %s to %s", t.Camp.Branch, remote)
	url, err := request(ctx, t)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		r.warn("gh is not installed: open the pull request yourself")
	case err != nil:
		return r, &Refusal{about(t), fmt.Sprintf("%s, but no pull request was opened: %v", did, err), "put that right, then vx ship " + Short(t.ID) + " again; or open it yourself"}
	default:
		did += ", " + url
	}
	r.Task, err = d.tasks().Update(context.WithoutCancel(ctx), t.ID, task.Done, to(task.Shipped))
	if conflict, ok := errors.AsType[*task.Conflict](err); ok {
		r.warn("it is %s by now: what its soldier adds is to be shipped again", conflict.Is)
		r.Task, err = d.tasks().Get(t.ID)
	}
	if err != nil {
		return r, fmt.Errorf("%s, but: %w", did, err)
	}
	r.Did = fmt.Sprintf("shipped %s %s: %s", t.Kind, Short(t.ID), did)
	r.Next = "vx prompt " + Short(t.ID) + " TEXT for what the review says; once it is merged: vx strike " + Short(t.ID)
	return r, nil
}

// asking is how long gh may take; it asks a server.
const asking = 2 * time.Minute

// request opens a pull request with gh, in the words of the commits, and is its address. One that is there already is as
// good. The error is exec.ErrNotFound where there is no gh.
func request(ctx context.Context, t task.Task) (string, error) {
	gh, err := exec.LookPath("gh")
	if err != nil {
		return "", exec.ErrNotFound
	}
	run := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, asking)
		defer cancel()
		cmd := exec.CommandContext(ctx, gh, args...)
		cmd.Dir = t.Camp.Path
		cmd.Env = append(camp.Environment(), "GH_PROMPT_DISABLED=1", "GH_NO_UPDATE_NOTIFIER=1", "NO_COLOR=1")
		cmd.WaitDelay = time.Second
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("gh: %w", ctx.Err())
		case err != nil:
			return "", fmt.Errorf("gh: %w: %s", err, cmp.Or(lastLine(said.String()), "it says nothing"))
		}
		return strings.TrimSpace(lastLine(string(out))), nil
	}
	if url, err := run("pr", "view", t.Camp.Branch, "--json", "url,state", "--jq", `select(.state == "OPEN") | .url`); err == nil && url != "" {
		return url, nil
	}
	args := []string{"pr", "create", "--head", t.Camp.Branch, "--fill"}
	if len(t.Camp.Base) < 40 { // a branch, and not a commit
		args = append(args, "--base", t.Camp.Base)
	}
	return run(args...)
}

// refused is a refusal of the camp's as one of the task's.
func refused(t task.Task, err error) error {
	if refusal, ok := errors.AsType[*camp.Refusal](err); ok {
		return &Refusal{about(t), refusal.Why, refusal.Fix}
	}
	return err
}

func commits(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return fmt.Sprintf("%d commits", n)
}

func short(commit string) string { return commit[:min(10, len(commit))] }
