//! The functions of a program.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

/// A function: its size and its names.
#[derive(Debug, Default)]
pub(crate) struct Function {
    pub(crate) size: u64,
    pub(crate) names: Vec<String>,
}

/// All functions of a program, by their address in the file.
pub(crate) fn of(program: &Path) -> io::Result<BTreeMap<u64, Function>> {
    let output = Command::new("readelf").args(["-sW"]).arg(program).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut functions: BTreeMap<u64, Function> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, address, size, "FUNC", _, _, _, name, ..] = fields.as_slice() else { continue };
        let Ok(address @ 1..) = u64::from_str_radix(address, 16) else { continue };
        let function = functions.entry(address).or_default();
        function.size = function.size.max(size.parse().unwrap_or(0));
        function.names.push((*name).to_owned());
    }
    if functions.len() < 1000 {
        let words = "the program has no symbols; build it with `profile.release.strip=false`";
        return Err(io::Error::other(words));
    }
    Ok(functions)
}
