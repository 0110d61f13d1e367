// A wrapper of pi with the structure and the limits of the one in the second report of docs/explanation/five-reports.md:
// subagent_wrapper.mjs before|after RESULT_FILE PROMPT. It finds pi on PATH, and writes the result as JSON.

import { spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createInterface } from "node:readline";

const SEMANTIC_EXIT_GRACE_MS = 250;
const FORCED_EXIT_GRACE_MS = 250;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const [version, file, prompt] = process.argv.slice(2);
const pi = spawn("pi", ["--mode", "json", "-p", "--no-session", prompt], {
  env: { ...process.env, PI_SUBAGENTS_CHILD: "1" },
  stdio: ["ignore", "pipe", "inherit"],
});

let finalText = "";
let stopReason, isClosed, isEnding;
const endAfterTheAnswer = async () => {
  if (isEnding) return;
  isEnding = true;
  await sleep(SEMANTIC_EXIT_GRACE_MS);
  if (isClosed) return;
  pi.kill("SIGTERM");
  await sleep(FORCED_EXIT_GRACE_MS);
  if (!isClosed) pi.kill("SIGKILL");
};
createInterface({ input: pi.stdout }).on("line", (line) => {
  const { type, message } = JSON.parse(line);
  if (type !== "message_end" || message.role !== "assistant") return;
  finalText = message.content.map(({ text }) => text ?? "").join("");
  stopReason = message.stopReason ?? stopReason;
  if (message.stopReason && version === "after") void endAfterTheAnswer();
});
pi.on("close", async (code) => {
  isClosed = true;
  await writeFile(file, JSON.stringify({ exitCode: code ?? 0, finalText, stopReason }));
  process.exit(code ?? 0);
});
