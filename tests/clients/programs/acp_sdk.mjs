// The TypeScript SDK of the Agent Client Protocol, as an editor uses it: it starts the agent itself.

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { client, methods, ndJsonStream } from "@agentclientprotocol/sdk";
import { main, tell } from "./telling.mjs";

const { agent: ask, client: asked } = methods;
const ours = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
};

const start = (agent) => {
  const child = spawn(agent, { stdio: ["pipe", "pipe", "inherit"] });
  child.on("exit", (code, signal) => tell("exit", { code, signal }));
  return child;
};

/** Talk with an agent, whose updates `on` sees. */
const connect = async (child, op, on) => {
  const editor = client({ name: "editor" })
    .onNotification(asked.session.update, ({ params: { update } }) => {
      tell("update", { kind: update.sessionUpdate, text: update.content?.text, status: update.status });
      on(update);
    })
    .onRequest(asked.session.requestPermission, ({ params: { toolCall, options } }) => {
      tell("asked", { tool: toolCall.title });
      return { outcome: { outcome: "selected", optionId: options[0].optionId } };
    })
    .onRequest(asked.fs.readTextFile, ({ params }) => (tell("reads", params), { content: "its text" }))
    .onRequest(asked.fs.writeTextFile, ({ params }) => (tell("writes", params), {}))
    .onRequest(asked.terminal.create, ({ params }) => (tell("terminal", params), { terminalId: "t1" }))
    .onRequest(asked.terminal.output, () => ({ output: "made", truncated: false }))
    .onRequest(asked.terminal.waitForExit, () => ({ exitCode: 0 }))
    .onRequest(asked.terminal.release, () => (tell("released"), {}));
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await editor.connectWith(stream, async (peer) => {
    const first = { protocolVersion: 1, clientCapabilities: ours };
    tell("agent", await peer.request(ask.initialize, first));
    await op(peer);
  });
};

/** Talk with an agent of one's own, and close its stdin, whatever comes of that. */
const talk = async (agent, op, on = () => {}) => {
  const child = start(agent);
  try {
    await connect(child, op, on);
  } finally {
    child.stdin.end();
  }
};

const open = (peer) => peer.request(ask.session.new, { cwd: "/", mcpServers: [] });

const prompt = async (peer, sessionId, text) => {
  const { stopReason } = await peer.request(ask.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  tell("turn", { stop: stopReason });
};

const usages = {
  prompt: (agent) => talk(agent, async (peer) => prompt(peer, (await open(peer)).sessionId, "hi")),

  prompts: (agent) =>
    talk(agent, async (peer) => {
      const { sessionId } = await open(peer);
      await prompt(peer, sessionId, "first");
      await prompt(peer, sessionId, "second");
    }),

  loads: (agent) =>
    talk(agent, async (peer) => {
      await peer.request(ask.session.load, { sessionId: "old", cwd: "/", mcpServers: [] });
      await prompt(peer, "old", "hi");
    }),

  async cancels(agent) {
    let cancel;
    const op = async (peer) => {
      const { sessionId } = await open(peer);
      cancel = () => peer.notify(ask.session.cancel, { sessionId });
      await prompt(peer, sessionId, "first");
      await prompt(peer, sessionId, "second");
    };
    await talk(agent, op, (update) => update.content?.text === "well" && cancel());
  },

  /** Leave the agent as the SDK leaves it. */
  async leaves(agent) {
    const child = start(agent);
    await connect(child, async (peer) => prompt(peer, (await open(peer)).sessionId, "hi"), () => {});
    tell("left", { exit: child.exitCode });
    process.exit();
  },
};

await main(usages);
