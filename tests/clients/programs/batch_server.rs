// A caller of gemini with the structure and the limit of surreal-mind: batch_server before|after AGENT...
// Before its fix the limit is on the whole run, after it on silence. It prints the answer. Exit code 124: the limit.
use std::io::{Read, Write};
use std::process::{exit, Command, Stdio};
use std::sync::mpsc::{channel, RecvTimeoutError::Timeout, Sender};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

fn follow(mut stream: impl Read + Send + 'static, told: Sender<Vec<u8>>, is_answer: bool) {
    std::thread::spawn(move || {
        let mut bytes = [0; 65536];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            if told.send(if is_answer { bytes[..count].to_vec() } else { vec![] }).is_err() { break; }
        }
    });
}

fn main() {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let mut agent = Command::new(&words[1]).args(&words[2..]).env("CI", "true").env("TERM", "dumb")
        .stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (told, heard) = channel();
    follow(agent.stdout.take().unwrap(), told.clone(), true);
    follow(agent.stderr.take().unwrap(), told, false);
    let (mut answer, mut since) = (vec![], Instant::now());
    loop {
        match heard.recv_timeout(LIMIT.saturating_sub(since.elapsed())) {
            Ok(bytes) => {
                answer.extend(bytes);
                if words[0] == "after" { since = Instant::now(); }
            }
            Err(error) if error == Timeout => {
                agent.kill().unwrap();
                agent.wait().unwrap();
                exit(124);
            }
            Err(_) => break,
        }
    }
    std::io::stdout().write_all(&answer).unwrap();
    exit(agent.wait().unwrap().code().unwrap_or(1));
}
