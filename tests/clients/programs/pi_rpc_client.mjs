// The RPC client of pi in the ways in which programs use it. It runs `node <cliPath>`: the path of a shim here.

import { fileURLToPath } from "node:url";
// From its own file: the package's door loads the whole agent, which takes a second.
import { RpcClient } from "./node_modules/@earendil-works/pi-coding-agent/dist/modes/rpc/rpc-client.js";
import { main, tell } from "./telling.mjs";

/** Have a pi that runs; `on` sees what it tells. */
const start = async (agent, on = () => {}) => {
  const cliPath = fileURLToPath(new URL("pi_shim.mjs", import.meta.url));
  const pi = new RpcClient({ cliPath, env: { PI: agent } });
  pi.onEvent((event) => {
    const { type, message } = event;
    if (type !== "message_end") tell(type);
    else if (message.role === "assistant") tell("message", { text: message.content[0]?.text, stop: message.stopReason });
    on(event, pi);
  });
  await pi.start();
  tell("started");
  return pi;
};

const stop = async (pi) => {
  tell("stops");
  await pi.stop();
  tell("stopped");
};

/** Say whether a promise is still open a while later, by when what it waits for has come or never will. */
const isOpen = (promise) => {
  const late = new Promise((resolve) => setTimeout(() => resolve(true), 500));
  return Promise.race([promise.then(() => false, () => false), late]);
};

const usages = {
  async prompt(agent) {
    const pi = await start(agent);
    await pi.promptAndWait("hi");
    await stop(pi);
  },

  /** Stop, and be gone at once. */
  async leave(agent) {
    const pi = await start(agent);
    await pi.promptAndWait("hi");
    await stop(pi);
    process.exit();
  },

  async aborts(agent) {
    const abort = async ({ type }, pi) => {
      if (type !== "tool_execution_start") return;
      await pi.abort();
      tell("aborted");
    };
    const pi = await start(agent, abort);
    await pi.promptAndWait("first");
    await pi.promptAndWait("second");
    await stop(pi);
  },

  async follows(agent) {
    const pi = await start(agent, ({ type }, pi) => type === "tool_execution_start" && pi.followUp("more"));
    await pi.promptAndWait("hi");
    await stop(pi);
  },

  /** Prompt while the agent is at work. */
  async twice(agent) {
    const again = async ({ type }, pi) => {
      if (type !== "tool_execution_start") return;
      await pi.prompt("second").then(() => tell("accepted"), ({ message }) => tell("refused", { message }));
      await pi.followUp("go on");
    };
    const pi = await start(agent, again);
    await pi.promptAndWait("first");
    await stop(pi);
  },

  /** Wait for an agent that dies while it works. */
  async loses(agent) {
    const pi = await start(agent);
    const died = new Promise((resolve) => pi.process.once("exit", resolve));
    const answer = pi.promptAndWait("hi", undefined, 3_600_000);
    tell("died", { code: await died });
    tell("waits", { open: await isOpen(answer) });
    await stop(pi);
    process.exit();
  },

  /** Prompt an agent that does not read. */
  async asksTheDeaf(agent) {
    const pi = await start(agent);
    tell("waits", { open: await isOpen(pi.prompt("hi")) });
    await stop(pi);
    process.exit();
  },

  /** Be gone without a stop. */
  async forgets(agent) {
    const pi = await start(agent);
    await pi.promptAndWait("hi");
    process.exit();
  },

  /** Prompt an agent that is dead already. */
  async asksTheDead(agent) {
    const pi = await start(agent);
    await new Promise((resolve) => pi.process.once("exit", resolve));
    tell("died");
    await pi.prompt("hi").catch(({ message }) => tell("refused", { message }));
    process.exit();
  },
};

await main(usages);
