//go:build !windows

package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"vx/internal/state"
)

// grammar is the whole command line: one field per command, each in a file of its own.
type grammar struct {
	Init      initCommand      `cmd:"" group:"setup" brief:"register the Stop hook" help:"Register the Stop hook in Claude Code's settings."`
	Upgrade   upgradeCommand   `cmd:"" group:"setup" brief:"mend the hook" help:"Mend the hook where it is registered."`
	Uninstall uninstallCommand `cmd:"" group:"setup" brief:"take the hook out" help:"Take the hook out of the settings."`
	Doctor    doctorCommand    `cmd:"" group:"setup" brief:"look for what is wrong" help:"Look for what keeps a wake from an idle session."`
	Status    statusCommand    `cmd:"" group:"setup" brief:"how things stand" help:"Show who waits, what waits, and what was delivered."`
	Demo      demoCommand      `cmd:"" group:"setup" brief:"show the way of a wake" help:"Show the whole way of a wake, in a scratch HOME and project."`

	Dispatch   dispatchCommand   `cmd:"" group:"soldiers" brief:"hand out a task" help:"Hand a task to a new soldier, in a camp and a pane of its own."`
	Watch      watchCommand      `cmd:"" group:"soldiers" brief:"be told of a session" help:"Be told when an agent that runs already has finished."`
	Prompt     promptCommand     `cmd:"" group:"soldiers" brief:"give it more to do" help:"Give a soldier that has finished more to do."`
	Decide     decideCommand     `cmd:"" group:"soldiers" brief:"answer its question" help:"Answer a soldier's question."`
	Redispatch redispatchCommand `cmd:"" group:"soldiers" brief:"send another soldier" help:"Give an interrupted task to another soldier."`
	Land       landCommand       `cmd:"" group:"soldiers" brief:"merge what it did" help:"Merge a finished task's branch."`
	Ship       shipCommand       `cmd:"" group:"soldiers" brief:"open a pull request" help:"Push a finished task's branch and open a pull request."`
	Strike     strikeCommand     `cmd:"" group:"soldiers" brief:"remove its camp" help:"End a task: remove its camp and close its pane."`
	Task       struct {
		Show taskShow `cmd:"" help:"Show one task: its status, what it waits for, what was seen."`
	} `cmd:"" group:"soldiers" brief:"look at one task" help:"Look at tasks."`
	Guide guideCommand `cmd:"" group:"soldiers" brief:"what a model must know" help:"Print a page that teaches a model these commands."`

	Run  runCommand `cmd:"" group:"news" brief:"run a command, then wake" help:"Run a command, and put a wake when it has ended."`
	Loop struct {
		Green  loopGreen  `cmd:"" help:"Let an agent work until a command ends with 0."`
		Answer loopAnswer `cmd:"" help:"Answer the question of such a loop, and go on."`
		Ralph  loopRalph  `cmd:"" help:"Let an agent work until a command finds no more work."`
		List   loopList   `cmd:"" help:"List the runs of the project, ralph.sh's too."`
		Status loopStatus `cmd:"" help:"Show one run."`
		Pause  loopPause  `cmd:"" help:"Have a run wait before its next piece of work."`
		Resume loopResume `cmd:"" help:"Let it go on."`
		Stop   loopStop   `cmd:"" help:"Have a run end before its next piece of work."`
		Check  loopCheck  `cmd:"" help:"In a shell loop: wait or end, as it is asked to."`
		Mark   loopMark   `cmd:"" help:"In a shell loop: write down that the run has ended."`
	} `cmd:"" group:"news" brief:"run and steer loops" help:"Run, see, pause and stop loops that let agents work."`
	Wake struct {
		Send wakeSend `cmd:"" help:"Put a wake into a project's queue."`
		List wakeList `cmd:"" help:"List what the queue holds."`
		Show wakeShow `cmd:"" help:"Show one wake and what became of it."`
		Log  wakeLog  `cmd:"" help:"Show what became of every wake, newest last."`
	} `cmd:"" group:"news" brief:"send wakes, look at them" help:"Send wakes, and see what became of them."`
	Forum struct {
		Inbox forumInbox `cmd:"" help:"Show the messages that wait, and acknowledge them."`
		Post  forumPost  `cmd:"" help:"Put a message into the inbox, and ring for it."`
	} `cmd:"" group:"news" brief:"feedback of reviews" help:"Keep the feedback of reviews in the project's inbox."`
	Mute   muteCommand   `cmd:"" group:"news" brief:"keep wakes for a while" help:"Let wakes stay in the queue for a while."`
	Unmute unmuteCommand `cmd:"" group:"news" brief:"deliver them again" help:"Deliver wakes again."`

	Project struct {
		List   projectList   `cmd:"" help:"List the projects that vx knows."`
		Move   projectMove   `cmd:"" help:"Keep the state of a project that was moved or renamed."`
		Forget projectForget `cmd:"" help:"Remove all that is kept of a project."`
	} `cmd:"" group:"house" brief:"list, move, forget" help:"List, move and forget projects."`
	Commander struct {
		List     commanderList     `cmd:"" help:"List the commanders of a project, and whether they wait."`
		Register commanderRegister `cmd:"" help:"Make the session that runs this known to its project."`
		Leave    commanderLeave    `cmd:"" help:"Forget the session that runs this."`
	} `cmd:"" group:"house" brief:"who is to be woken" help:"Show who is to be woken, and make it known."`
	GC       gcCommand `cmd:"" name:"gc" group:"house" brief:"remove what is old" help:"Remove what has been of no more use for long."`
	Sentinel struct {
		Await  sentinelAwait  `cmd:"" help:"Wait for news, print it, and so start the next turn."`
		Drain  sentinelDrain  `cmd:"" help:"Print the news there is now, or nothing."`
		Run    sentinelRun    `cmd:"" default:"1" help:"Be the sentinel, in the foreground: vx sentinel."`
		Stop   sentinelStop   `cmd:"" help:"End the sentinel."`
		Status sentinelStatus `cmd:"" help:"Show whether the sentinel runs, and which vx it is."`
	} `cmd:"" group:"house" brief:"watch for all projects" help:"Watch for all projects; and what the Stop hook runs."`
	Screen     screenCommand `cmd:"" group:"house" brief:"what does a pane show" help:"Tell from the text of a pane what the agent in it does."`
	Completion completion    `cmd:"" group:"house" brief:"complete in your shell" help:"Print a completion script for bash, zsh or fish."`
	Version    version       `cmd:"" group:"house" brief:"print the version" help:"Print the version."`
}

// execute parses the command line and runs the command. What a command's Run asks for is made when it asks.
func execute(args []string, std stdio) error {
	var g grammar
	app, err := kong.New(&g,
		kong.Name("vx"),
		kong.Description("Wakes an idle coding agent the moment its work elsewhere has ended."),
		kong.Writers(std.out, std.errw()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 80}),
		kong.Help(printHelp),
		kong.Bind(std),
		kong.BindSingletonProvider(interruptible),
		kong.BindSingletonProvider(state.Open),
	)
	if err != nil {
		return err
	}
	ctx, err := app.Parse(spelled(args))
	if err != nil {
		return err
	}
	return ctx.Run()
}

// interruptible is the context of a command that wants to tidy up when it is interrupted. A command that does not ask
// for it dies of the signal like any other program.
func interruptible() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	return ctx
}

// spelled rewrites the spellings that people try first: vx, vx help COMMAND, vx --version.
func spelled(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	return args
}
