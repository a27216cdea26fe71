// Package pi holds the tests on the real Pi, at the version that the facts in docs/pi.md are of and at an old one with
// another name: its terminal interface in a tmux, its rpc mode on pipes, a model on loopback, and the extension that vx
// installs. Nothing here is compiled without the build tag e2e; `make e2e` runs it. It needs Linux, tmux and npm (for Pi and
// the Node.js that it wants) and fails where one is missing.
//
// Every test lives in a world of its own: HOME, VEXILLUM_HOME, a project, an environment made from nothing. It ends only what
// works in that world. A test that is killed in the middle leaves a folder vx-pi-* in the temporary directory.
package pi
