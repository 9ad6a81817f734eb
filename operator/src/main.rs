//! The program `navin-operator`; all of it is in the library, so that tests can reach it.

fn main() -> std::process::ExitCode {
    navin_operator::cli::main()
}
