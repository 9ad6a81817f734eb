//! Tells what happens: steps with the time they took, commands as a person types them, and what they really printed.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::folder::TempFolder;
use crate::process::{Finished, Program};

/// Longest run of a command.
const LIMIT: Duration = Duration::from_secs(180);

/// Silent in tests, aloud in demos.
#[derive(Clone)]
pub struct Narrator(Option<Arc<Mutex<Story>>>);

struct Story {
    started: Instant,
    step: Option<Instant>,
    number: u32,
    /// Long texts (folders, addresses) and what is shown in their place.
    short: Vec<(String, String)>,
}

impl Narrator {
    /// Says nothing.
    #[must_use]
    pub fn silent() -> Self {
        Self(None)
    }

    /// Writes to stdout.
    #[must_use]
    pub fn aloud() -> Self {
        Self(Some(Arc::new(Mutex::new(Story { started: Instant::now(), step: None, number: 0, short: Vec::new() }))))
    }

    /// From now on `long` is shown as `short`.
    pub fn shorten(&self, long: &str, short: &str) {
        self.with(|story| story.short.push((long.to_owned(), short.to_owned())));
    }

    /// A new step; ends the one before with its time.
    pub fn step(&self, title: &str) {
        self.with(|story| {
            story.end_step();
            story.number += 1;
            story.step = Some(Instant::now());
            print(&format!("\n━━ {}. {title}", story.number));
        });
    }

    /// What happened, in a sentence.
    pub fn note(&self, text: &str) {
        self.with(|story| print(&format!("   {}", story.shown(text))));
    }

    /// Ends the last step.
    pub fn end(&self, text: &str) {
        self.with(|story| {
            story.end_step();
            print(&format!("\n{text} ({:.1} s in all)", story.started.elapsed().as_secs_f64()));
        });
    }

    /// Runs a command, showing it and what it printed.
    ///
    /// # Errors
    /// It cannot be started, or does not end.
    pub async fn run(&self, program: &Program, home: &TempFolder) -> Result<Finished> {
        self.with(|story| print(&format!("   $ {}", story.shown(&program.line()))));
        let finished = program.run(home, LIMIT).await?;
        self.with(|story| {
            for line in finished.stderr.lines().chain(finished.stdout.lines()) {
                print(&format!("     {}", story.shown(line)));
            }
            match finished.code() {
                Some(0) => {}
                code => print(&format!("     (exit code {})", code.map_or("none".to_owned(), |code| code.to_string()))),
            }
        });
        Ok(finished)
    }

    /// As [`Narrator::run`]; when told, stdout and stderr come in the order in which they were written, and both as stdout.
    ///
    /// # Errors
    /// As there.
    pub async fn run_as_on_terminal(&self, program: Program, home: &TempFolder) -> Result<Finished> {
        let program = if self.0.is_some() { program.one_stream() } else { program };
        self.run(&program, home).await
    }

    /// The file name of a path: how a person's shell would find a program.
    pub fn shorten_program(&self, path: &Path) {
        if let (Some(long), Some(short)) = (path.to_str(), path.file_name().and_then(|name| name.to_str())) {
            self.shorten(long, short);
        }
    }

    fn with(&self, tell: impl FnOnce(&mut Story)) {
        if let Some(story) = &self.0
            && let Ok(mut story) = story.lock()
        {
            tell(&mut story);
        }
    }
}

impl Story {
    fn end_step(&mut self) {
        if let Some(began) = self.step.take() {
            print(&format!("   ({:.1} s)", began.elapsed().as_secs_f64()));
        }
    }

    fn shown(&self, text: &str) -> String {
        self.short.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
    }
}

fn print(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}
