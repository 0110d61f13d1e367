// The SDK of opencode in the ways in which programs use it. It finds `opencode` on PATH, and starts `opencode serve`.

import { createOpencode } from "@opencode-ai/sdk";
import { main, tell } from "./telling.mjs";

const MESSAGE = { body: { parts: [{ type: "text", text: "hi" }] } };

/** Have a server and one session; events that say nothing of it are left out. */
const start = async (on = () => {}, more = {}) => {
  const { client, server } = await createOpencode({ port: 0, ...more });
  tell("listens", { url: server.url });
  const { stream } = await client.event.subscribe({ sseMaxRetryAttempts: 1 });
  const { data: session } = await client.session.create({ body: {} });
  const path = { id: session.id };
  const watch = async () => {
    for await (const { type, properties } of stream) {
      tell(type, { status: properties.status?.type, error: properties.error?.name, text: properties.part?.text });
      await on({ type, properties, client, server, path });
    }
    tell("stream ends");
  };
  return { client, server, path, watching: watch() };
};

const tellAnswer = ({ data, error }) => {
  const parts = data?.parts?.map(({ type, text, state }) => text ?? state?.status ?? type);
  tell("answer", { parts, finish: data?.info.finish, error: (data?.info.error ?? error)?.name });
};

const stop = async ({ server, watching }) => {
  tell("stops");
  server.close();
  await watching;
};

const usages = {
  async prompt() {
    const all = await start();
    tellAnswer(await all.client.session.prompt({ path: all.path, ...MESSAGE }));
    await stop(all);
  },

  /** Stop whatever comes of the prompt. */
  async outlasts() {
    const all = await start();
    const answer = all.client.session.prompt({ path: all.path, ...MESSAGE });
    await answer.then(tellAnswer, ({ name, message }) => tell("refused", { name, message }));
    await stop(all);
  },

  /** Stop, and be gone at once. */
  async leave() {
    const all = await start();
    tellAnswer(await all.client.session.prompt({ path: all.path, ...MESSAGE }));
    all.server.close();
    process.exit();
  },

  /** Prompt without waiting, and stop at the first idle. */
  async events() {
    const all = await start(({ type, server }) => type === "session.idle" && server.close());
    await all.client.session.promptAsync({ path: all.path, ...MESSAGE });
    await all.watching;
  },

  async permits() {
    const all = await start(({ type, properties, client, path }) => {
      const answer = { path: { ...path, permissionID: properties.id }, body: { response: "once" } };
      return type === "permission.asked" && client.postSessionIdPermissionsPermissionId(answer);
    });
    tellAnswer(await all.client.session.prompt({ path: all.path, ...MESSAGE }));
    await stop(all);
  },

  async rejects() {
    const all = await start(({ type, properties, client, path }) => {
      const answer = { path: { ...path, permissionID: properties.id }, body: { response: "reject" } };
      return type === "permission.asked" && client.postSessionIdPermissionsPermissionId(answer);
    });
    tellAnswer(await all.client.session.prompt({ path: all.path, ...MESSAGE }));
    await stop(all);
  },

  async aborts() {
    const all = await start(
      ({ type, properties, client, path }) =>
        type === "message.part.delta" && properties.delta === "well" && client.session.abort({ path }),
    );
    tellAnswer(await all.client.session.prompt({ path: all.path, ...MESSAGE }));
    tellAnswer(await all.client.session.prompt({ path: all.path, ...MESSAGE }));
    await stop(all);
  },

  /** Start a server that may be late. */
  async waits() {
    await start(undefined, { timeout: 1000 });
  },
};

await main(usages);
