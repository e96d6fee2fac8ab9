//! The other libraries, each behind a server `bench/peers_gpu.py NAME`: one question a line, one answer a line.
//!
//! A question has a time limit, since compilers and slow paths of libraries may take minutes. A server that does not
//! answer in time is ended with all of its children, and a new one is started for the next question.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::step::root;

/// How long a library may take to load; CUB is compiled in that time.
const START: Duration = Duration::from_secs(180);

/// A library.
pub struct Peer {
    name: &'static str,
    words: Vec<String>,
    running: Option<Running>,
}

struct Running {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
    complaint: Arc<Mutex<String>>,
}

impl Peer {
    /// Starts the server with the Python of `COULIS_BENCH_PYTHON`, or else with `python3`.
    pub fn start(name: &'static str) -> Peer {
        let python = std::env::var("COULIS_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let script = root().join("bench/peers_gpu.py").to_string_lossy().into_owned();
        Peer::of(name, vec![python, script, name.to_owned()])
    }

    fn of(name: &'static str, words: Vec<String>) -> Peer {
        let running = spawn(&words).ok();
        Peer { name, words, running }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The library with its version, or why it is not there.
    pub fn hello(&mut self) -> Result<String, String> {
        let answer = self.ask(&json!({ "do": "hello" }), START);
        let text = |member: &str| answer[member].as_str().map(str::to_owned);
        text("version").ok_or_else(|| text("error").unwrap_or_else(|| "no answer".to_owned()))
    }

    /// The answer to a workload: `ms`, or `none` or `error` with the reason.
    pub fn time(&mut self, workload: &Value, limit: Duration) -> Value {
        if self.running.is_none()
            && let Err(why) = self.hello()
        {
            return json!({ "error": why });
        }
        let mut question = workload.clone();
        question["do"] = json!("time");
        self.ask(&question, limit)
    }

    /// Ends the server, which frees its memory on the device.
    pub fn stop(&mut self) {
        let Some(running) = self.running.take() else { return };
        let Running { mut child, questions, .. } = running;
        // The server ends where its questions end; what it started may not.
        drop(questions);
        for _ in 0..20 {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = child.wait();
    }

    fn ask(&mut self, question: &Value, limit: Duration) -> Value {
        if self.running.is_none() {
            match spawn(&self.words) {
                Ok(running) => self.running = Some(running),
                Err(why) => return json!({ "error": why }),
            }
        }
        let Some(running) = &mut self.running else { return Value::Null };
        let asked = writeln!(running.questions, "{question}").and_then(|()| running.questions.flush());
        let answer = match asked {
            Ok(()) => running.answers.recv_timeout(limit),
            // A server that reads no more has ended.
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        let line = match answer {
            Ok(line) => line,
            Err(reason) => {
                let why = match reason {
                    RecvTimeoutError::Timeout => format!("no answer within {} s", limit.as_secs()),
                    RecvTimeoutError::Disconnected => ended(&running.complaint),
                };
                self.kill();
                return json!({ "error": why });
            }
        };
        serde_json::from_str(&line).unwrap_or_else(|_| json!({ "error": format!("answered `{line}`") }))
    }

    fn kill(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let group = format!("-{}", running.child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let _ = running.child.wait();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// That a server ended, with the last line that it wrote to its standard error, if any.
fn ended(complaint: &Mutex<String>) -> String {
    // What was written last may still be under way to here.
    std::thread::sleep(Duration::from_millis(100));
    let last = complaint.lock().map(|line| line.clone()).unwrap_or_default();
    if last.is_empty() { "the server ended".to_owned() } else { format!("the server ended: {last}") }
}

fn spawn(words: &[String]) -> Result<Running, String> {
    let program = &words[0];
    let mut command = Command::new(program);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, so that compilers that it starts end with it.
    let mut child = command.process_group(0).spawn().map_err(|error| format!("`{program}`: {error}"))?;
    let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let ((questions, output), errors) = pipes.ok_or_else(|| format!("`{program}` has no pipes"))?;
    let (send, answers) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let complaint = Arc::new(Mutex::new(String::new()));
    let last = Arc::clone(&complaint);
    std::thread::spawn(move || {
        for line in
            BufReader::new(errors).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty())
        {
            if let Ok(mut last) = last.lock() {
                *last = line;
            }
        }
    });
    Ok(Running { child, questions, answers, complaint })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Peer {
        Peer::of("torch", ["sh", "-c", script].map(str::to_owned).to_vec())
    }

    #[test]
    fn answers_come_in_turn_and_a_library_that_is_missing_says_so() {
        let mut peer =
            shell(r#"read a; echo '{"version": "A 1"}'; read b; echo '{"ms": 2.5}'; read c; echo no"#);
        assert_eq!(peer.hello(), Ok("A 1".to_owned()));
        let limit = Duration::from_secs(20);
        assert_eq!(peer.time(&json!({ "id": "w" }), limit), json!({ "ms": 2.5 }));
        assert_eq!(peer.time(&json!({ "id": "w" }), limit), json!({ "error": "answered `no`" }));
        let mut missing = shell(r#"read a; echo '{"error": "no module"}'"#);
        assert_eq!(missing.hello(), Err("no module".to_owned()));
    }

    #[test]
    fn a_server_that_hangs_is_ended_and_the_next_question_gets_a_new_one() {
        let mut peer = shell(r#"read a; echo '{"version": "A 1"}'; read b; sleep 60"#);
        peer.hello().unwrap();
        for _ in 0..2 {
            let answer = peer.time(&json!({ "id": "w" }), Duration::from_millis(50));
            assert_eq!(answer, json!({ "error": "no answer within 0 s" }));
            assert!(peer.running.is_none());
        }
    }

    #[test]
    fn a_server_that_ends_is_told() {
        let mut peer = shell("echo no such library >&2; exit 1");
        assert_eq!(peer.hello(), Err("the server ended: no such library".to_owned()));
    }
}
