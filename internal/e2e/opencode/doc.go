// Package opencode holds the tests on the real OpenCode, at the version that the facts in docs/opencode.md are of: its terminal
// interface in a tmux, its server on loopback, a model on loopback, and the plugin as `vx init` puts it there. Nothing here is
// compiled without the build tag e2e; `make e2e` runs it. It needs Linux, tmux and npm (for OpenCode) and fails where one is
// missing. 2.x is not here: internal/opencode speaks to a fake one.
//
// Every test lives in a world of its own: HOME, VEXILLUM_HOME, a project, an environment made from nothing. It ends only what
// works in that world. A test that is killed in the middle leaves a folder vx-opencode-* in the temporary directory.
package opencode
