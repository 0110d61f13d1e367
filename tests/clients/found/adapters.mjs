// The documented use of each npm package, a few lines each; `adapters.mjs NAME PROMPT` prints the answer. It stands
// beside the node_modules of that package. An error of the package ends the program with exit code 1.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Call a tool of an MCP server, as an MCP client does, and give the text of its answer. */
async function callTool(bin, tool, given) {
  const server = spawn(process.execPath, [bin], { stdio: ["pipe", "pipe", "inherit"] });
  const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const about = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "client", version: "1" } };
  send({ id: 1, method: "initialize", params: about });
  for await (const line of createInterface({ input: server.stdout })) {
    const { id, result, error } = JSON.parse(line);
    if (id === 1) {
      send({ method: "notifications/initialized" });
      send({ id: 2, method: "tools/call", params: { name: tool, arguments: given } });
    } else if (id === 2) {
      server.stdin.end();
      server.kill();
      if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
      return result.content[0].text;
    }
  }
  throw new Error("the server has ended");
}

const adapters = {
  "@choplin/mcp-gemini-cli": (prompt) =>
    callTool("node_modules/@choplin/mcp-gemini-cli/dist/index.js", "geminiChat", { prompt }),

  "@instantlyeasy/claude-code-sdk-ts": async (prompt) => {
    const { claude } = await import("@instantlyeasy/claude-code-sdk-ts");
    return claude().query(prompt).asText();
  },

  "@openai/codex-sdk": async (prompt) => {
    const { Codex } = await import("@openai/codex-sdk");
    const thread = new Codex({ codexPathOverride: "codex" }).startThread({ skipGitRepoCheck: true });
    return (await thread.run(prompt)).finalResponse;
  },

  "ai-sdk-provider-codex-cli": async (prompt) => {
    const { generateText } = await import("ai");
    const { codexExec } = await import("ai-sdk-provider-codex-cli");
    const model = codexExec("gpt-5", { codexPath: "codex", skipGitRepoCheck: true });
    return (await generateText({ model, prompt, maxRetries: 0 })).text;
  },

  "claude-max-api-proxy": async (prompt) => {
    const { startServer, stopServer } = await import("claude-max-api-proxy/dist/server/index.js");
    const server = await startServer({ port: 0 });
    const body = JSON.stringify({ model: "claude-sonnet-4", messages: [{ role: "user", content: prompt }] });
    const url = `http://127.0.0.1:${server.address().port}/v1/chat/completions`;
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const answer = await response.json();
    await stopServer();
    if (!response.ok) throw new Error(answer.error.message);
    return answer.choices[0].message.content;
  },

  "codex-mcp-server": (prompt) => callTool("node_modules/codex-mcp-server/dist/index.js", "codex", { prompt }),
};

console.log = console.error;
const [name, prompt] = process.argv.slice(2);
try {
  process.stdout.write(await adapters[name](prompt), () => process.exit());
} catch (error) {
  process.stderr.write(`${error.name}: ${error.message}\n`, () => process.exit(1));
}
