// pi-subagents as a program: it runs one subagent, prints its answer, and exits with its exit code.

import { createJiti } from "jiti";

const source = "./node_modules/pi-subagents/src/runs/foreground/execution.ts";
const { runSync } = await createJiti(import.meta.url).import(source);
const agent = { name: "scout", description: "looks", systemPrompt: "", source: "user", filePath: "scout.md" };
const { exitCode, finalOutput, error } = await runSync(process.cwd(), [agent], "scout", process.argv[2], { runId: "1" });
process.stdout.write(finalOutput ?? "");
if (error) process.stderr.write(`${error}\n`);
process.exitCode = exitCode;
