// An ACP agent that holds one session of a Node program: the kit is its editor, and prompts one at a time.

import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const answers = { initialize: { protocolVersion: 1 }, "session/new": { sessionId: "1" } };

/** Read requests until stdin ends; `ask` gives the text of an answer, or throws. */
export const serve = async (ask) => {
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (method === "session/prompt") {
      let end = { result: { stopReason: "end_turn" } };
      try {
        const content = { type: "text", text: await ask(params.prompt[0].text) };
        const update = { sessionUpdate: "agent_message_chunk", content };
        send({ method: "session/update", params: { sessionId: "1", update } });
      } catch (error) {
        end = { error: { code: 1, message: error.message } };
      }
      send({ id, ...end });
    } else if (id !== undefined) send({ id, result: answers[method] ?? {} });
  }
};
