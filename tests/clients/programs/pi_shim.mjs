// What `node <cliPath>` runs where pi is not JavaScript: the executable that $PI names, with the same streams.

import { spawn } from "node:child_process";

const pi = spawn(process.env.PI, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => pi.kill(signal));
pi.on("exit", (code, signal) => {
  process.removeAllListeners();
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
});
