// The TypeScript SDK of Codex as a supervisor: one prompt; the answer on stdout, and exit code 0 if there was one; else
// the agent's, as the SDK's error tells it.

import { constants } from "node:os";
import { Codex } from "@openai/codex-sdk";

const [agent, prompt] = process.argv.slice(2);
try {
  const { finalResponse } = await new Codex({ codexPathOverride: agent }).startThread({ skipGitRepoCheck: true }).run(prompt);
  process.stdout.write(finalResponse);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  const [, code, signal] = /exited with (?:code (\d+)|signal (\w+))/.exec(error.message) ?? [];
  process.exitCode = signal ? 128 + constants.signals[signal] : Number(code ?? 1) || 1;
}
