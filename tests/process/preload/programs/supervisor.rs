// A supervisor with hard-coded limits: 180 s of silence, 5 s between TERM and KILL.
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{exit, Command, Stdio};
use std::sync::mpsc::{channel, RecvTimeoutError::Timeout};
use std::time::Duration;

fn send(signal: &str, group: u32) {
    Command::new("kill").args([signal, "--", &format!("-{group}")]).status().unwrap();
}

fn main() {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let mut agent = Command::new(&words[0]).args(&words[1..]).process_group(0)
        .stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut output, (told, heard)) = (agent.stdout.take().unwrap(), channel());
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while output.read(&mut bytes).unwrap() > 0 {
            if told.send(()).is_err() { break; }
        }
    });
    let is_silent = |patience| loop {
        match heard.recv_timeout(Duration::from_secs(patience)) {
            Ok(()) => continue,
            Err(error) => break error == Timeout,
        }
    };
    let has_ended_it = is_silent(180);
    if has_ended_it {
        send("-TERM", agent.id());
        if is_silent(5) { send("-KILL", agent.id()); }
    }
    let status = agent.wait().unwrap();
    exit(if has_ended_it { 124 } else { status.code().unwrap_or(1) });
}
