//! The confinement alone, as a program: `engine-sandbox engine-sandbox ENGINE [ARGUMENT…]`. Products have it as a hidden subcommand;
//! this one is for the tests of this crate and for trying it by hand.

use std::process::ExitCode;

fn main() -> ExitCode {
    render::confined_main(std::env::args_os().skip(2))
}
