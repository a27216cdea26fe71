// Wakes the commander of this project when something that it waits for has ended. `vx sentinel await --hold` runs beside
// OpenCode, prints a wake as one line of JSON and keeps it in hand; it is given to the session as a message of the user, and
// only when that message stands in the session is vx told to forget it. Whatever comes between (a refusal, the end of
// OpenCode) leaves the wake with vx. What is measured of OpenCode, and the limits, are in vx's docs/opencode.md.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { Hooks, PluginInput } from "@opencode-ai/plugin";

// The child becomes vx, which takes its parent for the client: hence the exec. The places are those where the Stop hook looks.
const FIND_VX =
	'for v in "$(command -v vx 2>/dev/null)" "$HOME/.local/bin/vx" /opt/homebrew/bin/vx /usr/local/bin/vx /home/linuxbrew/.linuxbrew/bin/vx; ' +
	'do [ -f "$v" ] && [ -x "$v" ] && exec "$v" "$@"; done; exit 127';

const SECOND = 1000;
const LINE = 256 * 1024; // characters; a wake is far shorter
const LOOK = SECOND; // while there is a wake that does not stand in the session
const SHORT = 30 * SECOND; // an await that ends sooner had nothing to wait for here, or is broken
const ANSWER = 5 * SECOND; // for what OpenCode is asked
const ASKED = 10; // times in vain, before a session is taken for one that is gone
// vx takes a wake back from an OpenCode that says nothing for 30 seconds. These end before, so that it is not done behind our back.
const UNSEEN = 15 * SECOND; // for a message that OpenCode has not begun to work on
const BEGUN = 25 * SECOND; // for one that it has

/** Doubles from `first` with every failure in a row, up to `most`. */
function backOff(first: number, most: number, failures: number): number {
	return Math.min(first * 2 ** failures, most);
}

type Client = PluginInput["client"];

interface Wake {
	readonly token: string; // stands in the text, and nowhere else
	readonly text: string;
	readonly since: number;
	session: string; // that it was offered to
	begun: boolean; // OpenCode works on the message; it may stand in the session at any moment
}

// OpenCode calls this file more than once in a process: for each project that it serves, and for one project again when it
// listens on a port, when it has read its settings anew, and when the user has the file too. The last call for a folder wins.
interface Shared {
	readonly commanders: Map<string, Commander>; // by folder
	readonly sessions: Map<string, string>; // the last one of each folder, for the next call
	readonly withdrawn: Set<string>; // tokens of wakes that vx has back: their messages must not come to be any more
}
const SHARED = Symbol.for("vexillum-wake");
const global: typeof globalThis & { [SHARED]?: Shared } = globalThis;
const shared: Shared = (global[SHARED] ??= { commanders: new Map(), sessions: new Map(), withdrawn: new Set() });

function isObject(value: unknown): value is Record<string, unknown> {
	return typeof value === "object" && value !== null;
}

/** What a line of vx's is, undefined for one that is not understood. */
function parse(line: string): Wake | undefined {
	let found: unknown;
	try {
		found = JSON.parse(line);
	} catch {
		return undefined;
	}
	if (!isObject(found)) return undefined;
	const { token, text } = found;
	if (typeof token !== "string" || typeof text !== "string") return undefined;
	if (!/^\w+$/.test(token) || !text.includes(token)) return undefined; // it could never be recognised
	return { token, text, since: Date.now(), session: "", begun: false };
}

/** The result, undefined for one that fails or does not come in time: a server that hangs is not waited for. */
async function answer<T>(asked: Promise<T>): Promise<T | undefined> {
	let timer: NodeJS.Timeout | undefined;
	const late = new Promise<undefined>((resolve) => {
		timer = setTimeout(() => resolve(undefined), ANSWER).unref();
	});
	try {
		return await Promise.race([asked, late]);
	} catch {
		return undefined;
	} finally {
		clearTimeout(timer);
	}
}

/** One run of `vx sentinel await --hold`. It holds one wake at most and ends when it is told what became of it. */
class Await {
	told: "ack" | "nack" | undefined;
	stopped = false;
	readonly began = Date.now();
	readonly ended: Promise<void>;
	private readonly child: ChildProcessByStdio<Writable, Readable, null>;
	private line = "";

	constructor(cwd: string, session: string, woken: (wake: Wake) => void, over: (run: Await, code: number | null) => void) {
		const args = ["sentinel", "await", "--hold", "--harness", "opencode", "--session", session];
		// Its stdin is a pipe of which nobody else has this end: when OpenCode is killed outright, vx reads the end of it.
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
		this.stopped = true;
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

/** What is told of a session. It has more than its declared type says. */
type Info = Record<string, unknown>;

/** How the session's next turn would be run if the person asked for it: without it OpenCode takes its default agent. */
function mode(info: Info): { agent?: string; model?: { providerID: string; modelID: string }; variant?: string } {
	const { agent, model } = info;
	const { id, providerID, variant } = isObject(model) ? model : {};
	return {
		...(typeof agent === "string" && { agent }),
		...(typeof id === "string" && typeof providerID === "string" && { model: { providerID, modelID: id } }),
		...(typeof variant === "string" && variant !== "default" && { variant }),
	};
}

/** The commander of one folder: waits, and gives its session what comes. */
class Commander {
	private live = true;
	private session = ""; // "" until a person has spoken in one
	private spoken = 0; // messages that were heard
	private adopted = 0; // the one that the session is of
	private run: Await | undefined;
	private wake: Wake | undefined;
	private startTimer: NodeJS.Timeout | undefined;
	private lookTimer: NodeJS.Timeout | undefined;
	private shorts = 0; // awaits in a row that ended too soon
	private nacks = 0; // wakes in a row that went back
	private registering: Promise<void> = Promise.resolve();
	private readonly client: Client;
	private readonly folder: string;
	private readonly server: URL;

	constructor({ client, directory, serverUrl }: PluginInput) {
		this.client = client;
		this.folder = directory;
		this.server = serverUrl;
		const last = shared.sessions.get(directory);
		if (last) void this.heard(last);
	}

	/** Runs fn later, if the commander lives. Never keeps OpenCode from ending. */
	private later(ms: number, fn: () => void): NodeJS.Timeout {
		return setTimeout(() => this.safely(fn), ms).unref();
	}

	private safely(fn: () => void): void {
		if (!this.live) return;
		try {
			fn();
		} catch {
			// OpenCode is another than we know: vx has the wake.
		}
	}

	/** Someone has spoken in a session. That of a sub-agent is nobody's commander, and OpenCode does not say which one is shown. */
	async heard(session: string): Promise<void> {
		if (session === this.session) return;
		const order = ++this.spoken;
		let info = await this.ask(session);
		for (let tries = 0; !info && tries < ASKED && this.live && order === this.spoken; tries++) {
			await new Promise<void>((resolve) => setTimeout(resolve, backOff(SECOND, 30 * SECOND, tries)).unref());
			info = await this.ask(session);
		}
		if (!this.live || !info || info["parentID"] || order < this.adopted) return;
		this.adopted = order;
		if (session === this.session) return;
		this.session = session;
		shared.sessions.set(this.folder, session);
		this.registering = this.registering.then(() => this.register(session)).catch(() => {});
		this.change();
	}

	/** The session was deleted. */
	gone(session: string): void {
		if (shared.sessions.get(this.folder) === session) shared.sessions.delete(this.folder);
		if (session !== this.session) return;
		this.session = "";
		if (this.wake) this.settle("nack");
		this.change();
	}

	/** Has an await of the session that is there now. One that holds a wake comes to its own end first. */
	private change(): void {
		if (!this.run) this.start();
		else if (!this.wake) void this.run.stop();
	}

	private start(): void {
		clearTimeout(this.startTimer);
		if (!this.session || this.run) return;
		this.run = new Await(
			this.folder,
			this.session,
			(wake) => this.safely(() => this.woken(wake)),
			(run, code) => this.safely(() => this.over(run, code)),
		);
	}

	private over(run: Await, code: number | null): void {
		if (this.run !== run) return;
		this.run = undefined;
		this.drop(); // vx has put back what it was not told of
		this.startTimer = this.later(this.pause(run, code), () => this.start());
	}

	/** How long to wait before the next await. */
	private pause(run: Await, code: number | null): number {
		if (run.told === "nack") return backOff(2 * SECOND, 120 * SECOND, this.nacks++);
		if (run.stopped) return 0;
		if (code !== 0 || (!run.told && Date.now() - run.began < SHORT)) return backOff(5 * SECOND, 300 * SECOND, this.shorts++);
		this.shorts = 0;
		if (run.told) this.nacks = 0;
		return 0;
	}

	private woken(wake: Wake): void {
		if (this.run?.stopped) return; // vx puts it back
		this.wake = wake;
		this.lookTimer = this.later(LOOK, () => void this.look(wake));
		void this.offer(wake);
	}

	private async offer(wake: Wake): Promise<void> {
		const session = this.session;
		const info = session ? await this.ask(session) : undefined;
		if (this.wake !== wake) return;
		if (!info) return this.settle("nack");
		wake.session = session;
		const body = { ...mode(info), parts: [{ type: "text" as const, text: wake.text }] };
		const result = await this.client.session.promptAsync({ path: { id: session }, body }).catch(() => undefined);
		const status = result?.response.status ?? 0;
		// It answers 204 also for what another plugin refuses then, and of what went wrong inside it says nothing: we will see.
		if (this.wake === wake && status >= 400 && status < 500) this.settle("nack");
	}

	/** Does what can be done for a wake in hand whose message did not show itself. */
	private async look(wake: Wake): Promise<void> {
		if (this.wake !== wake) return;
		const late = Date.now() - wake.since > (wake.begun ? BEGUN : UNSEEN);
		if (late) shared.withdrawn.add(wake.token); // first, so that it cannot come after the look
		const found = wake.session !== "" && (await this.stands(wake));
		if (this.wake !== wake || !this.live) return;
		if (found) this.settle("ack");
		else if (late) this.settle("nack");
		else this.lookTimer = this.later(LOOK, () => void this.look(wake));
	}

	private async ask(session: string): Promise<Info | undefined> {
		const found: unknown = (await answer(this.client.session.get({ path: { id: session } })))?.data;
		return isObject(found) && found["id"] === session ? found : undefined;
	}

	private async stands(wake: Wake): Promise<boolean> {
		const asked = this.client.session.messages({ path: { id: wake.session }, query: { limit: 50 } });
		const messages = (await answer(asked))?.data ?? [];
		return messages.some(({ info, parts }) => info.role === "user" && textOf(parts).includes(wake.token));
	}

	private settle(order: "ack" | "nack"): void {
		if (!this.wake) return;
		if (order === "ack") shared.withdrawn.delete(this.wake.token);
		this.run?.tell(order, this.wake.token);
		this.drop(order === "ack");
	}

	/** Has no wake in hand any more. What may still be on its way into the session is held up where the model has not got it. */
	private drop(got = false): void {
		clearTimeout(this.lookTimer);
		if (this.wake && !got) shared.withdrawn.add(this.wake.token);
		this.wake = undefined;
	}

	/** OpenCode works on a message. */
	begun(text: string): void {
		if (this.wake && text.includes(this.wake.token)) this.wake.begun = true;
	}

	/** A text stands in a session: OpenCode says so when it has written it. */
	appeared(session: string, text: string): void {
		if (this.wake?.session === session && text.includes(this.wake.token)) this.settle("ack");
	}

	/** Makes the session known to vx, with the address of its server if that can be reached. */
	private async register(session: string): Promise<void> {
		const args = ["commander", "register", "--harness", "opencode", "--session", session, "--directory", this.folder];
		args.push(...(await listening(this.server, session, this.folder)));
		if (!this.live || session !== this.session) return;
		await new Promise<void>((resolve) => {
			const child = spawn("sh", ["-c", FIND_VX, "vx", ...args], { cwd: this.folder, stdio: "ignore" });
			child.unref();
			child.once("error", () => resolve());
			child.once("close", () => resolve());
		});
	}

	async end(): Promise<void> {
		this.live = false;
		clearTimeout(this.startTimer);
		if (this.wake) this.settle("nack");
		await this.run?.stop();
	}
}

/**
 * Where the server of a session can be reached, as arguments; none where nothing listens. OpenCode names an address in any
 * case, and what answers there may be another program: it has to know the session.
 */
async function listening(server: URL, session: string, folder: string): Promise<string[]> {
	const url = new URL(server);
	if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
	if (url.hostname === "[::]") url.hostname = "[::1]";
	const headers: Record<string, string> = {};
	const password = process.env["OPENCODE_SERVER_PASSWORD"];
	if (password) headers["authorization"] = `Basic ${Buffer.from(`${process.env["OPENCODE_SERVER_USERNAME"] || "opencode"}:${password}`).toString("base64")}`;
	const get = async (path: string): Promise<Record<string, unknown>> => {
		const response = await fetch(new URL(path, url), { headers, redirect: "error", signal: AbortSignal.timeout(ANSWER) });
		const found: unknown = response.ok ? await response.json() : undefined;
		return isObject(found) ? found : {};
	};
	try {
		const { directory } = await get(`/session/${session}`);
		const { version } = await get("/global/health");
		if (typeof directory !== "string" || typeof version !== "string" || realpathSync(directory) !== realpathSync(folder)) return [];
		return ["--url", url.origin, "--server-version", version];
	} catch {
		return [];
	}
}

/** Soldiers are nobody's commander. A camp has this file because it was committed, or because the user has it. */
function isSoldier(folder: string): boolean {
	if (process.env["VX_TASK"] || process.env["VX_HOOK"] === "0") return true;
	for (let dir = folder; ; dir = dirname(dir)) {
		const git = join(dir, ".git");
		const found = statSync(git, { throwIfNoEntry: false });
		if (found) return found.isFile() && /^gitdir: .*[/\\]worktrees[/\\][^/\\]+\s*$/.test(readFileSync(git, "utf8"));
		if (dir === dirname(dir)) return false;
	}
}

/** Reports whether this OpenCode does what it was told on the command line and ends. The terminal interface has no such words. */
function isOneShot(): boolean {
	const command = process.argv.slice(2).find((word) => ["run", "github", "serve", "web", "acp"].includes(word));
	return command === "run" || command === "github";
}

function textOf(parts: readonly { type: string; text?: string }[]): string {
	return parts.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("\n");
}

export const VexillumWake = async (input: PluginInput): Promise<Hooks> => {
	const folder = input.directory;
	let commander: Commander;
	try {
		if (isOneShot() || isSoldier(folder)) return {};
		void shared.commanders.get(folder)?.end().catch(() => {});
		commander = new Commander(input);
		shared.commanders.set(folder, commander);
	} catch {
		return {}; // no wakes for this folder; vx doctor says that nobody waits
	}
	const current = () => (shared.commanders.get(folder) === commander ? commander : undefined);
	return {
		"chat.message": async ({ sessionID }, { parts }) => {
			const text = textOf(parts);
			for (const token of shared.withdrawn) {
				if (text.includes(token)) throw new Error("vx has this wake back, since it was not taken in time. It comes again.");
			}
			current()?.begun(text);
			void current()?.heard(sessionID);
		},
		event: async ({ event }) => {
			if (event.type === "message.part.updated") {
				const { part } = event.properties;
				if (part.type === "text") current()?.appeared(part.sessionID, part.text);
			} else if (event.type === "session.deleted") {
				current()?.gone(event.properties.info.id);
			}
		},
		dispose: async () => {
			if (shared.commanders.get(folder) === commander) shared.commanders.delete(folder);
			await commander.end().catch(() => {});
		},
	};
};
