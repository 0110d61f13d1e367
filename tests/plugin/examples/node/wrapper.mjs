// Gives an agent a limit on silence, and tells in result.json what came of it.
// node wrapper.mjs SILENCE GRACE FOLDER AGENT..., both in seconds
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";

const [silence, grace, folder, command, ...args] = process.argv.slice(2);
const agent = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
let [status, answer, watchdog, killer] = ["ok", ""];

const watch = () => {
  clearTimeout(watchdog);
  watchdog = setTimeout(() => {
    status = "timeout";
    agent.kill("SIGTERM");
    killer = setTimeout(() => agent.kill("SIGKILL"), grace * 1000);
  }, silence * 1000);
};
watch();
agent.stdout.setEncoding("utf8").on("data", (data) => (watch(), (answer += data)));
agent.on("exit", (code) => {
  clearTimeout(watchdog), clearTimeout(killer);
  if (status === "ok" && code !== 0) status = "error";
  writeFileSync(`${folder}/result.json`, JSON.stringify({ status, answer: answer.trim() }));
});
