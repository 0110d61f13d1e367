// A child may be silent for 180 s; it answers after the seconds that are given. A thread reads, a channel waits.
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, sync::mpsc, thread};

fn main() {
    let begin = Instant::now();
    let script = "sleep $0; echo answer; exec sleep 1000";
    let after = env::args().nth(1).unwrap();
    let mut child = Command::new("sh").args(["-c", script, &after]).stdout(Stdio::piped()).spawn().unwrap();
    let (sender, receiver) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || { for line in out.lines() { let _ = sender.send(line.unwrap()); } });
    let seen = receiver.recv_timeout(Duration::from_secs(180)).map_or("timeout", |_| "data");
    println!("{} {}", seen, begin.elapsed().as_millis());
    child.kill().unwrap();
    child.wait().unwrap();
}
