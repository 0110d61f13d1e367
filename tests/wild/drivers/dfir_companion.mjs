// The provider of DFIR-Companion that asks codex.

const { CodexProvider } = await import(`${process.cwd()}/wild.mjs`);
const request = { systemPrompt: "You are brief.", userPrompt: process.argv[2], images: [] };
try {
  process.stdout.write((await new CodexProvider({ model: "" }).analyze(request)).rawText);
} catch (error) {
  process.stderr.write(`${error.name}: ${error.message}\n`);
  process.exitCode = 1;
}
