// A supervisor that counts the silence of its agent by one clock: `date` or `monotonic`.

import { spawn } from "node:child_process";

const [clock, agent, ...words] = process.argv.slice(2);
const read = clock === "date" ? Date.now : () => performance.now();
const child = spawn(agent, words, { stdio: ["ignore", "pipe", "ignore"] });
const start = read();
let last = start;
child.stdout.on("data", (data) => {
  process.stdout.write(data);
  last = read();
});
const look = setInterval(() => {
  if (read() - last > 180_000 || read() - start > 600_000) {
    process.exitCode = 124;
    child.kill("SIGKILL");
  }
}, 1000);
child.on("close", () => clearInterval(look));
