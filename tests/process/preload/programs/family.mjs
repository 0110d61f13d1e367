// Node starts a program, which starts others: it prints the milliseconds that its own clock shows at each line and at the end.
import { spawn } from "node:child_process";
const begin = performance.now();
const [command, ...words] = process.argv.slice(2);
const child = spawn(command, words, { stdio: ["ignore", "pipe", "inherit"] });
const since = () => Math.round(performance.now() - begin);
child.stdout.setEncoding("utf8").on("data", (text) => text.trim().split("\n").forEach((line) => console.log(since(), line)));
child.on("close", (code) => console.log(since(), "end", code));
