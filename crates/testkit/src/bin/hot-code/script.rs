//! The linker script.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use crate::functions::Function;

/// Names without their hash hold for every build, but all instances of a generic function have one such
/// name. Where that brings in more cold bytes than this, the exact name is taken, which holds as long as
/// neither the compiler nor the features of a dependency change.
const MOST_COLD: u64 = 256 << 10;

const HEAD: &str = "\
/* The functions that ordinary work touches, side by side and in the order of their first use, so that
   few pages of the program are mapped. Written by `scripts/hot-code`; a name that is not there any more
   does no harm. */
SECTIONS {
  .text.hot : {
";

/// The script, and what is to be said of it.
pub(crate) fn of(functions: &BTreeMap<u64, Function>, touched: &[u64]) -> (String, String) {
    let hot: HashSet<u64> = touched.iter().copied().collect();
    let mut cold: HashMap<String, u64> = HashMap::new();
    for (_, function) in functions.iter().filter(|(address, _)| !hot.contains(address)) {
        let names: HashSet<String> = function.names.iter().map(|name| lasting(name)).collect();
        for name in names {
            *cold.entry(name).or_default() += function.size;
        }
    }
    let mut text = HEAD.to_owned();
    let mut written = HashSet::new();
    let mut bytes = 0;
    for function in touched.iter().filter_map(|address| functions.get(address)) {
        bytes += function.size;
        for name in &function.names {
            let pattern = Some(lasting(name))
                .filter(|lasting| cold.get(lasting).copied().unwrap_or(0) <= MOST_COLD)
                .unwrap_or_else(|| exact(name));
            if written.insert(pattern.clone()) {
                let _ = writeln!(text, "    *(.text.{pattern} .text.unlikely.{pattern})");
            }
        }
    }
    text.push_str("  }\n} INSERT BEFORE .text;\n");
    let words = format!(
        "{} of {} functions are touched, {} KiB; {} names",
        touched.len(),
        functions.len(),
        bytes / 1024,
        written.len()
    );
    (text, words)
}

/// A name as it is in any build.
fn lasting(name: &str) -> String {
    let name = plain(name);
    if let Some(start) = name.len().checked_sub("17h0123456789abcdefE".len())
        && name.starts_with("_ZN")
        && name.get(start..).is_some_and(|end| end.starts_with("17h"))
    {
        return format!("{}17h*", &name[..start]);
    }
    if name.starts_with("_R") {
        return without_crate_hashes(name) + "*";
    }
    name.to_owned()
}

/// A name of this build.
fn exact(name: &str) -> String {
    let star = if name.starts_with('_') { "*" } else { "" };
    format!("{}{star}", plain(name))
}

/// Link-time optimisation puts a number behind some names.
fn plain(name: &str) -> &str {
    name.split_once(".llvm.").map_or(name, |(name, _)| name)
}

/// In names of the newer kind a crate is `Cs<hash>_`.
fn without_crate_hashes(name: &str) -> String {
    let mut parts = name.split("Cs");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("Cs");
        match part.split_once('_') {
            Some((hash, rest)) if hash.chars().all(|letter| letter.is_ascii_alphanumeric()) => {
                out.push_str("*_");
                out.push_str(rest);
            }
            _ => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_last_without_their_hashes() {
        let generic = "_ZN4core3ptr13drop_in_place17h0123456789abcdefE";
        assert_eq!(lasting(generic), "_ZN4core3ptr13drop_in_place17h*");
        assert_eq!(lasting(&format!("{generic}.llvm.12")), lasting(generic));
        assert_eq!(lasting("_RNvMs4_NtCslNY_5alloc7raw_vec"), "_RNvMs4_NtCs*_5alloc7raw_vec*");
        assert_eq!(lasting("sqlite3_step"), "sqlite3_step");
    }

    #[test]
    fn a_name_that_many_cold_functions_share_is_written_whole() {
        let function = |size, name: &str| Function { size, names: vec![name.to_owned()] };
        let name = |hash: u64| format!("_ZN1a17h{hash:016x}E");
        let mut functions =
            BTreeMap::from([(1, function(10, &name(1))), (2, function(10, &name(2)))]);
        assert!(of(&functions, &[1]).0.contains("*(.text._ZN1a17h* "));
        functions.insert(3, function(MOST_COLD, &name(3)));
        assert!(of(&functions, &[1]).0.contains("*(.text._ZN1a17h0000000000000001E* "));
    }
}
