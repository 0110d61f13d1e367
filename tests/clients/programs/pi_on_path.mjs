// The ways in which Node scripts run pi, which they find on their PATH.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { main, tell } from "./telling.mjs";

const start = () => spawn("pi", ["--mode", "json", "-p", "hi"], { stdio: ["ignore", "pipe", "inherit"] });

/** Call `on` for every message of the model. */
const read = (pi, on) =>
  createInterface({ input: pi.stdout }).on("line", (line) => {
    const { type, message } = JSON.parse(line);
    if (type === "message_end" && message.role === "assistant") {
      tell("message", { text: message.content[0]?.text, stop: message.stopReason });
      on(message);
    }
  });

/** Wait for an event of the process, and say how it ended. */
const end = async (pi, event) => {
  const [code, signal] = await new Promise((resolve) => pi.once(event, (...how) => resolve(how)));
  tell("ended", { code, signal });
  return code;
};

const usages = {
  async reads() {
    const pi = start();
    read(pi, () => {});
    await end(pi, "close");
  },

  async exits() {
    const pi = start();
    read(pi, () => {});
    await end(pi, "exit");
    process.exit();
  },

  /** Do as the wrapper of pi-subagents: a stop reason starts TERM after 250 ms, then KILL; no code is success. */
  async wraps() {
    const pi = start();
    const kill = () => pi.kill("SIGKILL");
    const terminate = () => pi.kill("SIGTERM") && setTimeout(kill, 1000).unref();
    let steps;
    read(pi, ({ stopReason }) => {
      if (stopReason) steps ??= setTimeout(terminate, 250);
    });
    const code = await end(pi, "exit");
    clearTimeout(steps);
    tell("verdict", { success: (code ?? 0) === 0 });
    process.exit();
  },
};

await main(usages);
