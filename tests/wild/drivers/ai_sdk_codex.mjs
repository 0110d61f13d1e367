// ai-sdk-provider-codex-cli below the AI SDK; the prompt is in a file, as it may be too long for a command line.

import { readFileSync } from "node:fs";

const root = process.cwd();
const { createCodexCli } = await import(`${root}/dist/index.js`);
const { generateText } = await import(`${root}/node_modules/ai/dist/index.mjs`);
const model = createCodexCli()("gpt-5", { codexPath: "codex", skipGitRepoCheck: true });
try {
  const { text } = await generateText({ model, prompt: readFileSync(process.argv[2], "utf8"), maxRetries: 0 });
  process.stdout.write(text, () => process.exit());
} catch (error) {
  process.stderr.write(`${error.name}: ${error.message}\n`, () => process.exit(1));
}
