//go:build !windows

package main

import (
	"context"

	"vx/internal/doctor"
	"vx/internal/state"
)

type doctorCommand struct {
	JSON  bool `name:"json" help:"Print JSON."`
	Probe bool `name:"probe" help:"Also send a real wake through the registered hook, in a scratch project, and try the state directory's file system."`
	place
}

func (d *doctorCommand) Run(ctx context.Context, std stdio) error {
	root, err := d.examined()
	if err != nil {
		return err
	}
	patient := doctor.Meet(root)
	patient.Version = thisBuild().Version
	checks := doctor.Checks
	if d.Probe {
		checks = append(checks[:len(checks):len(checks)], doctor.Probes...)
	}
	all := doctor.Examine(ctx, patient, checks)
	if d.JSON {
		err = std.json(all)
	} else {
		err = doctor.Print(std.out, all)
	}
	if err == nil && doctor.Failed(all) {
		err = exitStatus(exitFailed)
	}
	return err
}

// examined is the project's root, "" outside of any. A state directory that is not to be used is doctor's to report.
func (p place) examined() (string, error) {
	dir, err := state.Look()
	if err != nil {
		dir = nil
	}
	root, err := p.root(dir)
	if _, none := err.(*noProject); none {
		return "", nil
	}
	return root, err
}
