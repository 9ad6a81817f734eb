//! `clctl completion bash|zsh|fish`: a script that the shell reads.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

/// Arguments.
#[derive(Args)]
pub(crate) struct Completion {
    /// Your shell. In bash: source <(clicklink clctl completion bash)
    shell: Shell,
}

/// Shells that are supported.
#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

impl Completion {
    pub(super) fn run(self) -> ExitCode {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut command = crate::command_line();
        let name = command.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, name, &mut script);
        let script = String::from_utf8_lossy(&script);
        // Scripts hold tabs and escapes of their own, made from nothing but our command line.
        crate::terminal::verbatim(script.trim_end());
        ExitCode::SUCCESS
    }
}
