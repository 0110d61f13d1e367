// A child may be silent for 180 s; it answers after the seconds that are given.
const { spawn } = require("child_process");
const begin = Date.now();
const say = (what) => { console.log(what, Date.now() - begin); child.kill("SIGKILL"); };
const child = spawn("sh", ["-c", `sleep ${process.argv[2]}; echo answer; exec sleep 1000`]);
const timer = setTimeout(() => say("timeout"), 180000);
child.stdout.once("data", () => { clearTimeout(timer); say("data"); });
child.on("exit", () => process.exit());
