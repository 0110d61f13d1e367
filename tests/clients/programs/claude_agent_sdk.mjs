// The TypeScript SDK of Claude Code in the ways in which programs use it.

import { query } from "@anthropic-ai/claude-agent-sdk";
import { main, tell } from "./telling.mjs";

const see = (message) => {
  const { type, subtype, is_error } = message;
  const text = type === "assistant" ? message.message.content[0].text : message.result;
  tell("message", { type, subtype, is_error, text });
  return message;
};

const drain = async (messages) => {
  for await (const message of messages) see(message);
};

/** Give the messages up to the next result. */
const turn = async (messages) => {
  for (;;) {
    const { value, done } = await messages.next();
    if (done) return undefined;
    if (see(value).type === "result") return value;
  }
};

/** A prompt that is written message by message, as in a chat. */
const chat = () => {
  const waiting = [];
  let wake = () => {};
  let closed = false;
  const prompt = async function* () {
    for (;;) {
      while (waiting.length) {
        const message = { role: "user", content: waiting.shift() };
        yield { type: "user", session_id: "", parent_tool_use_id: null, message };
      }
      if (closed) return;
      await new Promise((resolve) => (wake = resolve));
    }
  };
  const say = (text) => (waiting.push(text), wake());
  return { prompt: prompt(), say, end: () => ((closed = true), wake()) };
};

const options = (agent, more = {}) => ({ pathToClaudeCodeExecutable: agent, settingSources: [], ...more });

const usages = {
  drain: (agent) => drain(query({ prompt: "hi", options: options(agent) })),

  async break(agent) {
    for await (const message of query({ prompt: "hi", options: options(agent) })) {
      if (see(message).type === "result") break;
    }
  },

  async close(agent) {
    const { prompt, say } = chat();
    const messages = query({ prompt, options: options(agent) });
    say("hi");
    await turn(messages);
    tell("closes");
    messages.close();
  },

  /** Close, and be gone at once. */
  async leave(agent) {
    const messages = query({ prompt: "hi", options: options(agent) });
    await turn(messages);
    messages.close();
    tell("left");
    process.exit();
  },

  async abort(agent) {
    const abortController = new AbortController();
    for await (const message of query({ prompt: "hi", options: options(agent, { abortController }) })) {
      if (see(message).type === "assistant") abortController.abort();
    }
  },

  async turns(agent) {
    const { prompt, say, end } = chat();
    const messages = query({ prompt, options: options(agent) });
    say("first");
    await turn(messages);
    say("second");
    await turn(messages);
    end();
    await drain(messages);
  },

  async interrupt(agent) {
    const { prompt, say, end } = chat();
    const messages = query({ prompt, options: options(agent) });
    say("first");
    for (;;) {
      const { value } = await messages.next();
      if (see(value).type === "assistant") break;
    }
    await messages.interrupt();
    tell("interrupted");
    await turn(messages);
    say("second");
    await turn(messages);
    end();
    await drain(messages);
  },

  async asks(agent) {
    const canUseTool = async (tool, input) => {
      tell("asked", { tool, input });
      return input.command === "ls" ? { behavior: "allow", updatedInput: input } : { behavior: "deny", message: "no" };
    };
    const hook = async (input) => (tell("hook", { event: input.hook_event_name, tool: input.tool_name }), {});
    const hooks = { PreToolUse: [{ hooks: [hook] }], PostToolUse: [{ hooks: [hook] }] };
    await drain(query({ prompt: "hi", options: options(agent, { canUseTool, hooks }) }));
  },
};

await main(usages);
