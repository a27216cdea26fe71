//go:build !windows

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker (-X main.release=1.2.3); a build without it is named by its module or revision.
var release string

type version struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// build is what `vx version` tells about this binary.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (v version) Run(std stdio) error {
	b := thisBuild()
	if v.JSON {
		return std.json(b)
	}
	_, err := fmt.Fprintf(std.out, "vx %s %s %s/%s\n", b.Version, b.Go, b.OS, b.Arch)
	return err
}

func thisBuild() build {
	b := build{Version: release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
		if len(b.Revision) >= 12 {
			b.Version += "-" + b.Revision[:12]
		}
	}
	return b
}
