// pi-subagents runs one subagent and prints its answer; it stands at ARGV[2], as one file that esbuild made.

const [source, prompt] = process.argv.slice(2);
const { runSync } = await import(`${process.cwd()}/${source}`);
process.argv[1] = "pi"; // it starts the program again that it runs in, if that is a script
const agent = { name: "scout", description: "looks", systemPrompt: "", source: "user", filePath: "scout.md" };
const { exitCode, finalOutput, error } = await runSync(process.cwd(), [agent], "scout", prompt, { runId: "1" });
process.stdout.write(finalOutput ?? "");
if (error) process.stderr.write(`${error}\n`);
process.exitCode = exitCode;
