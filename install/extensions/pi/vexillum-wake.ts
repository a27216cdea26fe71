// Wakes the commander of this project when something that it waits for has ended. `vx sentinel await --hold` runs beside
// Pi, prints a wake as one line of JSON and keeps it in hand; it is given to the model as a message of the user, and only
// when that message stands in the session is vx told to forget it. Whatever comes between (a refusal, Escape, another
// session, the end of Pi) leaves the wake with vx. What is measured of Pi, and the limits, are in vx's docs/pi.md.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

// The child becomes vx, which takes its parent for the client: hence the exec. The places are those where the Stop hook looks.
const FIND_VX =
	'for v in "$(command -v vx 2>/dev/null)" "$HOME/.local/bin/vx" /opt/homebrew/bin/vx /usr/local/bin/vx /home/linuxbrew/.linuxbrew/bin/vx; ' +
	'do [ -f "$v" ] && [ -x "$v" ] && exec "$v" sentinel await --hold "$@"; done; exit 127';

const SECOND = 1000;
const LINE = 256 * 1024; // characters; a wake is far shorter
const LOOK = 2 * SECOND; // while there is a wake that the model has not got
const SHORT = 30 * SECOND; // an await that ends sooner had nothing to wait for here, or is broken
const OFFERS = 3; // in vain, before vx has the wake back: another commander may be able to take it

/** Doubles from `first` with every failure in a row, up to `most`. */
function backOff(first: number, most: number, failures: number): number {
	return Math.min(first * 2 ** failures, most);
}

interface Wake {
	readonly token: string; // stands in the text, and nowhere else
	readonly text: string;
	offers: number;
	again: number; // no other offer before this time
	taken: boolean; // Pi has begun to work on the offer: it is queued, or its turn is being prepared
	seen: boolean; // its message has appeared
}

/** What a line of vx's is, undefined for one that is not understood. */
function parse(line: string): Wake | undefined {
	let found: unknown;
	try {
		found = JSON.parse(line);
	} catch {
		return undefined;
	}
	if (typeof found !== "object" || found === null || !("token" in found) || !("text" in found)) return undefined;
	const { token, text } = found;
	if (typeof token !== "string" || typeof text !== "string") return undefined;
	if (!/^\w+$/.test(token) || !text.includes(token)) return undefined; // it could never be recognised
	return { token, text, offers: 0, again: 0, taken: false, seen: false };
}

/** One run of `vx sentinel await --hold`. It holds one wake at most and ends when it is told what became of it. */
class Await {
	told: "ack" | "nack" | undefined;
	readonly began = Date.now();
	readonly ended: Promise<void>;
	private readonly child: ChildProcessByStdio<Writable, Readable, null>;
	private line = "";

	constructor(cwd: string, args: string[], woken: (wake: Wake) => void, over: (run: Await, code: number | null) => void) {
		// Its stdin is a pipe of which nobody else has this end: when Pi is killed outright, vx reads the end of it.
		this.child = spawn("sh", ["-c", FIND_VX, "vx", ...args], { cwd, stdio: ["pipe", "pipe", "ignore"] });
		this.child.unref();
		for (const stream of [this.child.stdin, this.child.stdout]) {
			stream.on("error", () => {}); // the end of the child says all
			if ("unref" in stream && typeof stream.unref === "function") stream.unref();
		}
		this.child.stdout.setEncoding("utf8").on("data", (data: string) => this.read(data, woken));
		this.ended = new Promise((resolve) => {
			const end = (code: number | null) => {
				resolve();
				over(this, code);
			};
			this.child.once("error", () => end(127));
			this.child.once("close", end);
		});
	}

	private read(data: string, woken: (wake: Wake) => void): void {
		if (this.line.length > LINE) return;
		this.line += data;
		const end = this.line.indexOf("\n");
		if (end < 0 && this.line.length <= LINE) return;
		const wake = parse(this.line.slice(0, Math.max(end, 0)));
		this.line = "";
		if (wake) woken(wake);
		else this.child.stdin.end(); // vx takes back what it holds
	}

	tell(order: "ack" | "nack", token: string): void {
		if (this.told) return;
		this.told = order;
		this.child.stdin.end(`${order} ${token}\n`);
	}

	/** Ends the child, and returns when it is gone. */
	async stop(): Promise<void> {
		this.child.stdin.end();
		for (const signal of ["SIGTERM", "SIGKILL"] as const) {
			let timer: NodeJS.Timeout | undefined;
			const late = new Promise<"late">((resolve) => {
				timer = setTimeout(() => resolve("late"), 2 * SECOND);
			});
			const first = await Promise.race([this.ended, late]);
			clearTimeout(timer);
			if (first !== "late") return;
			this.child.kill(signal);
		}
	}
}

/** The commander of one session: waits, and gives the model what comes. */
class Commander {
	private live = true;
	private run: Await | undefined;
	private wake: Wake | undefined;
	private startTimer: NodeJS.Timeout | undefined;
	private lookTimer: NodeJS.Timeout | undefined;
	private done = ""; // the token of the last wake that the model got
	private compacting = 0; // since when; 0 for not
	private shorts = 0; // awaits in a row that ended too soon
	private nacks = 0; // wakes in a row that went back
	private readonly pi: ExtensionAPI;
	private readonly ctx: ExtensionContext;

	constructor(pi: ExtensionAPI, ctx: ExtensionContext) {
		this.pi = pi;
		this.ctx = ctx;
		this.start();
	}

	/** Runs fn later, if the session lives; Pi's objects throw once it does not. Never keeps Pi from ending. */
	private later(ms: number, fn: () => void): NodeJS.Timeout {
		return setTimeout(() => this.safely(fn), ms).unref();
	}

	safely(fn: () => void): void {
		if (!this.live) return;
		try {
			fn();
		} catch {
			// The session was replaced at this moment, or Pi is another than we know: vx has the wake.
		}
	}

	private start(): void {
		const args = ["--harness", "pi", "--session", this.ctx.sessionManager.getSessionId()];
		const file = this.ctx.sessionManager.getSessionFile();
		if (file) args.push("--transcript", file);
		this.run = new Await(
			this.ctx.cwd,
			args,
			(wake) => this.safely(() => this.woken(wake)),
			(run, code) => this.safely(() => this.over(run, code)),
		);
	}

	private over(run: Await, code: number | null): void {
		if (this.run !== run) return;
		this.run = undefined;
		this.wake = undefined; // vx has put back what it was not told of
		this.startTimer = this.later(this.pause(run, code), () => this.start());
	}

	/** How long to wait before the next await. */
	private pause(run: Await, code: number | null): number {
		if (run.told === "nack") return backOff(2 * SECOND, 120 * SECOND, this.nacks++);
		if (code !== 0 || (!run.told && Date.now() - run.began < SHORT)) return backOff(5 * SECOND, 300 * SECOND, this.shorts++);
		this.shorts = 0;
		if (run.told) this.nacks = 0;
		return 0;
	}

	private woken(wake: Wake): void {
		this.wake = wake;
		this.look();
	}

	private lookIn(ms: number): void {
		clearTimeout(this.lookTimer);
		this.lookTimer = this.later(ms, () => this.look());
	}

	/** Does what can be done for the wake in hand. Pi tells nobody of a refusal, so it is asked for again and again. */
	private look(): void {
		const wake = this.wake;
		if (!wake || wake.seen) return;
		this.lookIn(LOOK); // first, since what follows may throw
		if (this.ctx.hasUI && this.ctx.ui.getEditorText().includes(wake.token)) {
			this.settle("ack"); // taken out of Pi's queue, as with Escape: the person has it
			return;
		}
		const idle = this.ctx.isIdle();
		// Compaction refuses, and so does what else keeps Pi busy without a turn that could be aborted.
		if (this.isCompacting() || (!idle && !this.ctx.signal)) return;
		if (this.ctx.hasPendingMessages() || (!idle && wake.taken) || Date.now() < wake.again) return;
		if (idle && wake.offers >= OFFERS) {
			this.settle("nack");
			return;
		}
		this.offer(wake);
	}

	private offer(wake: Wake): void {
		wake.again = Date.now() + backOff(2 * SECOND, 120 * SECOND, wake.offers++);
		wake.taken = false;
		this.pi.sendUserMessage(wake.text, { deliverAs: "followUp" });
	}

	private settle(order: "ack" | "nack"): void {
		if (this.wake) this.run?.tell(order, this.wake.token);
		this.wake = undefined;
		clearTimeout(this.lookTimer);
	}

	/** Older Pis do not say that a compaction failed. */
	private isCompacting(): boolean {
		return Date.now() - this.compacting < 300 * SECOND;
	}

	compaction(running: boolean): void {
		this.compacting = running ? Date.now() : 0;
	}

	/** Pi has begun to work on a message that an extension sent; true if it is one that the model has already. */
	input(text: string): boolean {
		if (this.done && text.includes(this.done)) return true;
		const wake = this.wake;
		if (!wake || !text.includes(wake.token)) return false;
		wake.taken = true;
		// What may still refuse it can be slow: a program that fetches the key, another extension that asks the person.
		wake.again = Math.max(wake.again, Date.now() + backOff(30 * SECOND, 120 * SECOND, Math.max(wake.offers - 1, 0)));
		return false;
	}

	appeared(text: string): void {
		if (!this.wake || !text.includes(this.wake.token)) return;
		this.wake.seen = true;
		this.done = this.wake.token;
	}

	/** Acknowledges a wake whose message is on disk, so that a kill of Pi cannot lose it any more, or will never be there. */
	written(surely: boolean): void {
		if (!this.wake?.seen) return;
		const file = this.ctx.sessionManager.getSessionFile();
		if (surely || !file || existsSync(file)) this.settle("ack");
	}

	runEnded(aborted: boolean): void {
		this.written(true);
		if (this.wake && aborted) {
			this.wake.taken = false;
			this.wake.again = 0;
		}
		this.lookIn(0); // not in the middle of Pi's own end of the run
	}

	async end(): Promise<void> {
		this.live = false;
		clearTimeout(this.startTimer);
		clearTimeout(this.lookTimer);
		if (this.wake) this.settle(this.wake.seen ? "ack" : "nack");
		await this.run?.stop();
	}
}

/** Soldiers are nobody's commander. Trust of a project covers the worktrees below it, so a camp loads this file unasked. */
function isSoldier(cwd: string): boolean {
	if (process.env["VX_TASK"] || process.env["VX_HOOK"] === "0") return true;
	for (let dir = cwd; ; dir = dirname(dir)) {
		const git = join(dir, ".git");
		const found = statSync(git, { throwIfNoEntry: false });
		if (found) return found.isFile() && /^gitdir: .*[/\\]worktrees[/\\][^/\\]+\s*$/.test(readFileSync(git, "utf8"));
		if (dir === dirname(dir)) return false;
	}
}

/** Reports whether a person, or a program in its place, will read on. Older Pis have no mode. */
function isAttended(ctx: ExtensionContext): boolean {
	const mode: string | undefined = ctx.mode;
	return mode === undefined ? ctx.hasUI : mode === "tui" || mode === "rpc";
}

function textOf(content: string | readonly { type: string; text?: string }[]): string {
	return typeof content === "string" ? content : content.map((part) => part.text ?? "").join("");
}

// Pi loads this file once for the project and once for the user where both have it; one of them is enough for a process.
const MARKER = Symbol.for("vexillum-wake");
const shared: typeof globalThis & { [MARKER]?: object } = globalThis;

export default function (pi: ExtensionAPI): void {
	const self = {};
	let commander: Commander | undefined;
	const tell = (fn: (c: Commander) => void) => {
		const c = commander;
		c?.safely(() => fn(c));
	};

	pi.on("session_start", (_event, ctx) => {
		try {
			if (commander || shared[MARKER] || !isAttended(ctx) || isSoldier(ctx.cwd)) return;
			commander = new Commander(pi, ctx);
			shared[MARKER] = self;
		} catch {
			// No wakes for this session; vx doctor says that nobody waits.
		}
	});
	pi.on("session_shutdown", async () => {
		const last = commander;
		commander = undefined;
		await last?.end().catch(() => {});
		if (shared[MARKER] === self) delete shared[MARKER];
	});

	pi.on("input", (event) => {
		if (event.source !== "extension") return;
		let known = false;
		tell((c) => {
			known = c.input(event.text);
		});
		return known ? { action: "handled" } : undefined;
	});
	pi.on("message_start", (event) => {
		const { message } = event;
		if (message.role === "user") tell((c) => c.appeared(textOf(message.content)));
	});
	pi.on("message_end", () => {
		setImmediate(() => tell((c) => c.written(false))); // Pi writes it after its extensions were told
	});
	pi.on("agent_start", () => tell((c) => c.compaction(false)));
	pi.on("agent_end", () => {
		setImmediate(() => tell((c) => c.written(true)));
	});
	pi.on("agent_settled", (event) => tell((c) => c.runEnded(event.aborted)));
	pi.on("session_before_compact", () => tell((c) => c.compaction(true)));
	pi.on("session_compact", () => tell((c) => c.compaction(false)));
	pi.on("session_compact_failed", () => tell((c) => c.compaction(false)));
}
