// The TypeScript SDK of Codex as a supervisor: one prompt; the answer on stdout, and exit code 0 if there was one; else
// the agent's, as the SDK's error tells it.

import { text } from "node:stream/consumers";
import { constants } from "node:os";
import { Codex } from "@openai/codex-sdk";

const [agent, ...order] = process.argv.slice(2);
const prompt = await text(process.stdin);
const codex = new Codex({ codexPathOverride: agent });
const resume = order.indexOf("resume");
const options = { skipGitRepoCheck: true };
const thread = resume < 0 ? codex.startThread(options) : codex.resumeThread(order[resume + 1], options);
try {
  const { finalResponse } = await thread.run(prompt);
  process.stdout.write(finalResponse);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  const [, code, signal] = /exited with (?:code (\d+)|signal (\w+))/.exec(error.message) ?? [];
  process.exitCode = signal ? 128 + constants.signals[signal] : Number(code ?? 1) || 1;
}
