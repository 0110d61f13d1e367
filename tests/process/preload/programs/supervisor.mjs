// A supervisor with hard-coded limits: 180 s of silence, 5 s between TERM and KILL.
import { spawn } from "node:child_process";
const [command, ...words] = process.argv.slice(2);
const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"], detached: true });
const send = (signal) => { try { process.kill(-child.pid, signal); } catch { /* it is gone */ } };
let timer, isSilent = false;
const arm = () => {
  clearTimeout(timer);
  timer = setTimeout(() => { isSilent = true; send("SIGTERM"); setTimeout(send, 5000, "SIGKILL").unref(); }, 180000);
};
child.stdout.on("data", arm);
child.on("close", (code) => process.exit(isSilent ? 124 : code ?? 1));
arm();
