//! The program `navin-manager`; all of it is in the library, so that tests can reach it.

fn main() -> std::process::ExitCode {
    navin_manager::cli::main()
}
