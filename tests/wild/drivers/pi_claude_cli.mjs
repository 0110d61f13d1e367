// The provider of pi-claude-cli, as pi calls it: a claude for each turn.

import { serve } from "./acp_front.mjs";

const { streamViaCli } = await import(`${process.cwd()}/wild.mjs`);
const model = { id: "claude-sonnet-4-5", cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
await serve(async (prompt) => {
  const messages = [{ role: "user", content: prompt }];
  const { content, stopReason } = await streamViaCli(model, { messages }, { cwd: process.cwd() }).result();
  const text = content.map((part) => part.text ?? "").join("");
  if (text.startsWith("Error: ")) throw new Error(text);
  if (stopReason === "toolUse") throw new Error("pi is asked to run a tool");
  return text;
});
process.exit();
