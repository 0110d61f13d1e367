// The TypeScript SDK of Codex in the ways in which programs use it.

import { Codex } from "@openai/codex-sdk";
import { main, tell } from "./telling.mjs";

const codex = (agent) => new Codex({ codexPathOverride: agent });

const run = async (thread, prompt, more) => {
  const { finalResponse, usage, items } = await thread.run(prompt, more);
  tell("turn", { text: finalResponse, usage, items: items.map((item) => item.type), thread: thread.id });
};

const usages = {
  run: (agent) => run(codex(agent).startThread({ skipGitRepoCheck: true }), "hi"),

  async streamed(agent) {
    const { events } = await codex(agent).startThread({ skipGitRepoCheck: true }).runStreamed("hi");
    for await (const event of events) tell("event", { type: event.type, item: event.item?.type });
  },

  async resume(agent) {
    const thread = codex(agent).startThread({ skipGitRepoCheck: true });
    await run(thread, "first");
    await run(thread, "second");
  },

  async abort(agent) {
    const abort = new AbortController();
    const { events } = await codex(agent).startThread({ skipGitRepoCheck: true }).runStreamed("hi", { signal: abort.signal });
    for await (const event of events) {
      if (event.type !== "item.completed") continue;
      tell("aborts");
      abort.abort();
    }
  },
};

await main(usages);
