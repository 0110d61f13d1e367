import { Worker, isMainThread, parentPort } from "node:worker_threads";
if (isMainThread) {
  const begin = Date.now();
  const say = (word) => console.log(word, Date.now() - begin);
  new Worker(new URL(import.meta.url)).on("message", say);
  setTimeout(() => say("main"), 60000);
} else {
  setTimeout(() => {
    parentPort.postMessage("timer");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20000);
    parentPort.postMessage("atomics");
  }, 45000);
}
