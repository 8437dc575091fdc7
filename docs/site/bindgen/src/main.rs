//! `bindgen FILE.wasm DIRECTORY` writes the WebAssembly in the form that browsers and node load.

use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, folder] = &arguments[..] else {
        eprintln!("Name the program and the directory: bindgen FILE.wasm DIRECTORY");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(program).typescript(false);
    bindgen
        .remove_name_section(true)
        .remove_producers_section(true);
    // A script, because browsers cannot load a module from a file on disk.
    let written = bindgen
        .no_modules(true)
        .and_then(|bindgen| bindgen.generate(folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
