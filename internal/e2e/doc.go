// Package e2e holds the tests on the real Claude Code: its terminal interface in a tmux of its own, against a mock of the
// Messages API on loopback, with the hook that vx itself installs. Nothing here is compiled without the build tag e2e;
// `make e2e` runs it. It needs Linux, tmux and npm (for the clients at their pinned versions) and fails where one is missing:
// a test of the real client that was skipped would read as one that passed.
//
// Where a herdr is needed it is the fake one, at one of its protocols, with real clients in its panes: no herdr was to be
// had. The tests say what a commander is told of soldiers, and in which order; when is in their logs.
//
// It is not for what a fake can show: the grammar, the queue and the settings have their own tests.
//
// Every test lives in a world of its own (HOME, VEXILLUM_HOME, project, tmux socket, an environment made from nothing, a key
// that is not one), and ends only the processes whose working directory lies in that world. A test that is killed in
// the middle leaves a folder vx-e2e-* in the temporary directory, and the tmux server in it.
package e2e
