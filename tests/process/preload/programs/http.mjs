// A server answers after 120 s; its client waits 60 s, 180 s, and with a timeout of its socket.
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
const begin = Date.now();
const say = (...words) => console.log(...words, Date.now() - begin);
const server = http.createServer(async (_, response) => { await sleep(120000); response.end("answer"); });
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${server.address().port}`;
await fetch(url, { signal: AbortSignal.timeout(60000) }).catch((error) => say(error.name));
await fetch(url, { signal: AbortSignal.timeout(180000) }).then(async (response) => say(await response.text()));
await new Promise((done) => {
  const request = http.get(url, { timeout: 30000 }, (response) => response.resume().on("end", done));
  request.on("timeout", () => say("socket timeout"));
});
say("end");
server.close();
server.closeAllConnections();
