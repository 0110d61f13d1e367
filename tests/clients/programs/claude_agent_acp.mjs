// The ACP agent over Claude Code, as an editor starts it: plain lines of JSON-RPC, no library between.

import { spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { main, tell } from "./telling.mjs";

const program = fileURLToPath(import.meta.resolve("@zed-industries/claude-agent-acp/dist/index.js"));

/** Start the agent over a claude; give what asks it, and the process. */
const start = (claude) => {
  const child = spawn(process.execPath, [program], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, CLAUDE_CODE_EXECUTABLE: claude },
  });
  const waiting = new Map();
  const heard = new EventEmitter();
  let number = 0;
  const send = (message) => child.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  const hear = ({ id, method, params, result, error }) => {
    if (method === "session/update") {
      const { sessionUpdate: kind, content } = params.update;
      tell("update", { kind, text: content?.text });
      if (content?.text) heard.emit(content.text);
    } else if (method === "session/request_permission") {
      tell("asked", { input: params.toolCall.rawInput });
      send({ id, result: { outcome: { outcome: "selected", optionId: "allow" } } });
    } else if (method === undefined) {
      const { resolve, reject } = waiting.get(id);
      waiting.delete(id);
      if (error) reject(new Error(`${error.message} ${error.data?.details ?? ""}`.trim()));
      else resolve(result);
    }
  };
  createInterface({ input: child.stdout }).on("line", (line) => hear(JSON.parse(line)));
  const ask = (method, params) => {
    const id = ++number;
    send({ id, method, params });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  };
  child.on("exit", (code, signal) => tell("exit", { code, signal }));
  return { ask, send, heard, child };
};

const gone = (child) => new Promise((resolve) => child.once("exit", resolve));

/** Do something with an open session, and end the agent by TERM, whatever comes of that. */
const inSession = async (claude, op) => {
  const agent = start(claude);
  try {
    await agent.ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await agent.ask("session/new", { cwd: process.cwd(), mcpServers: [] });
    const prompt = async (text) => {
      tell("prompt", { text });
      const { stopReason } = await agent.ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
      tell("turn", { stop: stopReason });
    };
    await op({ ...agent, sessionId, prompt });
  } finally {
    const end = gone(agent.child);
    agent.child.kill();
    await end;
  }
};

const usages = {
  prompt: (claude) => inSession(claude, ({ prompt }) => prompt("hi")),

  prompts: (claude) =>
    inSession(claude, async ({ prompt }) => {
      await prompt("first");
      await prompt("second");
    }),

  cancels: (claude) =>
    inSession(claude, async ({ prompt, send, sessionId, heard }) => {
      heard.once("well", () => send({ method: "session/cancel", params: { sessionId } }));
      await prompt("first");
      await prompt("second");
    }),

  /** Close its stdin, as an editor does that quits. */
  quits: (claude) =>
    inSession(claude, async ({ prompt, child }) => {
      await prompt("hi");
      child.stdin.end();
      await new Promise((resolve) => setTimeout(resolve, 500));
      tell("waited", { lives: child.exitCode === null && child.signalCode === null });
    }),
};

await main(usages);
