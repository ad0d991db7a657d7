//! The order of the rooms under src/: each imports only from those before it.

use std::fs;
use std::path::{Path, PathBuf};

/// The house, in order. `lib.rs` mounts them in this order too.
const ROOMS: [&str; 12] = ["error", "layout", "rows", "host", "simd", "call", "program", "backend", "array", "autograd", "ops", "python"];
/// How many of them are the kernels' crate.
const KERNELS: usize = 8;

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("src is readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// Every room that a file names as `crate::room`, with the line it does so in. Comments do not count.
fn named_rooms(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        for room in ROOMS {
            let needle = format!("crate::{room}");
            let whole = |at: usize| {
                let end = at + needle.len();
                code[end..].chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '_')
            };
            if code.match_indices(&needle).any(|(at, _)| whole(at)) {
                found.push((n + 1, room));
            }
        }
    }
    found
}

#[test]
fn a_room_imports_only_from_rooms_before_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    assert!(all.len() > 30, "the walk found only {} files", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let inside = path.strip_prefix(&src).expect("below src");
        let inside = inside.strip_prefix("kernels").unwrap_or(inside);
        let own = inside.components().next().and_then(|c| c.as_os_str().to_str()).expect("a name").trim_end_matches(".rs");
        if own == "lib" {
            continue;
        }
        let place = ROOMS.iter().position(|r| *r == own).unwrap_or_else(|| panic!("{own} is no room of the house"));
        let text = fs::read_to_string(&path).expect("text");
        for (line, room) in named_rooms(&text) {
            let other = ROOMS.iter().position(|r| *r == room).expect("a room");
            if other > place {
                wrong.push(format!("{}:{line} imports from `{room}`, which stands after `{own}`", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rooms that a crate's root mounts, in order.
fn mounted(root: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(root)).expect("a root");
    let module = |line: &str| Some(line.trim().trim_start_matches("pub ").strip_prefix("mod ")?.trim_end_matches(';').to_string());
    text.lines().filter_map(module).collect()
}

#[test]
fn both_crates_mount_the_rooms_in_order() {
    let (kernels, core) = (mounted("src/kernels/lib.rs"), mounted("src/lib.rs"));
    assert_eq!(kernels, ROOMS[..KERNELS]);
    // The core has its own `error`, which wraps that of the kernels.
    assert_eq!(core[0], ROOMS[0]);
    assert_eq!(core[1..], ROOMS[KERNELS..]);
}

/// Where bare locks are used: each has a rank there all the same. What all other locks are made of is `raw_lock.rs`.
const BARE_LOCKS: [&str; 3] = ["kernels/backend/wgpu/device/context.rs", "kernels/host/lock_order.rs", "kernels/host/raw_lock.rs"];
/// Locks whose rank is entered by hand.
const RANKED_BY_HAND: [&str; 4] =
    ["array/deferred/queue.rs", "autograd/engine/accumulate.rs", "kernels/host/lock_order.rs", "kernels/backend/wgpu/device/context.rs"];

/// The files under src/ of which a line of code has one of these words.
fn files_with(words: &[&str]) -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let mut found = Vec::new();
    for path in all {
        let text = fs::read_to_string(&path).expect("text");
        // Tests of single files may lock as they like.
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        if code.lines().filter_map(|l| l.split("//").next()).any(|l| words.iter().any(|w| l.contains(w))) {
            found.push(path.strip_prefix(&src).expect("below src").to_string_lossy().replace('\\', "/"));
        }
    }
    found.sort();
    found
}

#[test]
fn every_lock_has_a_rank() {
    assert_eq!(files_with(&["parking_lot", "sync::Mutex", "sync::RwLock", "sync::{Mutex"]), BARE_LOCKS);
    for file in RANKED_BY_HAND {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)).expect("text");
        assert!(text.contains("enter(Rank::"), "{file} has a lock without a rank");
    }
}

#[test]
fn python_is_entered_in_one_place() {
    assert_eq!(files_with(&["Python::attach", "Python::try_attach"]), ["python/host.rs"]);
}

#[test]
fn arrays_name_no_backend() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders: Vec<String> = fs::read_dir(src.join("kernels/backend"))
        .expect("readable")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.is_dir() && p.file_name().is_some_and(|n| n != "cpu"))
        .map(|p| p.file_name().and_then(|n| n.to_str()).expect("a name").to_uppercase())
        .collect();
    assert!(folders.len() >= 2);
    let mut all = Vec::new();
    files(&src.join("array"), &mut all);
    for path in all {
        let text = fs::read_to_string(&path).expect("text").to_uppercase();
        for backend in &folders {
            let word = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric());
            let named = text.match_indices(backend.as_str()).any(|(at, _)| word(at));
            assert!(!named, "{} names the backend {backend}", path.display());
        }
    }
}

#[test]
fn one_file_makes_nodes() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let makes = |text: &str| text.lines().any(|l| l.split("//").next().unwrap_or("").contains(" Node::new("));
    let found: Vec<_> = all.into_iter().filter(|p| makes(&fs::read_to_string(p).expect("text"))).collect();
    let found: Vec<_> = found.iter().map(|p| p.strip_prefix(&src).expect("below src").display().to_string()).collect();
    // What makes a node records; `record.rs` says what else has to happen then.
    let makers: Vec<_> = found.iter().filter(|p| !p.ends_with("record.rs")).collect();
    assert!(found.len() == 1 && makers.is_empty(), "nodes are made in {found:?}");
}

/// The files of a room whose code, without its unit tests, has a word.
fn naming(room: &str, word: &str) -> Vec<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room);
    let mut all = Vec::new();
    files(&src, &mut all);
    let names = |text: &str| {
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        code.lines().any(|l| l.split("//").next().unwrap_or("").contains(word))
    };
    let mut found: Vec<String> = all
        .iter()
        .filter(|p| names(&fs::read_to_string(p).expect("text")))
        .map(|p| p.strip_prefix(&src).expect("below the room").display().to_string())
        .collect();
    found.sort();
    found
}

#[test]
fn differentiation_knows_few_operations_by_name() {
    // Those that it needs itself, and those that the scalar language over tensors is made of.
    assert_eq!(naming("autograd", "RowId::"), ["complex_parts.rs", "dispatch/expr.rs", "dispatch/pointwise.rs", "primitives.rs"]);
}

#[test]
fn differentiation_knows_no_backend() {
    assert!(naming("autograd", "wgpu").is_empty());
    // Dispatch alone asks whether an input lies on the CPU: where inputs lie apart, it brings 0-d ones together.
    assert_eq!(naming("autograd", "Device::"), ["dispatch/apply.rs"]);
}

/// The name that a line declares, if it declares a type: structs, enums, traits, unions and aliases.
fn declared_type(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub") {
        rest = match after.strip_prefix('(') {
            Some(inside) => inside.split_once(')')?.1,
            None => after,
        };
        rest = rest.strip_prefix(' ')?;
    }
    rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let keyword = ["struct ", "enum ", "trait ", "type ", "union "].into_iter().find(|k| rest.starts_with(k))?;
    let name = &rest[keyword.len()..];
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(&name[..end])
}

/// Whether the line with this number stands in a trait or an implementation of one: the associated types there are not types of their own.
fn is_associated(lines: &[&str], at: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut inside = indent(lines[at]);
    for line in lines[..at].iter().rev().filter(|l| !l.trim().is_empty()) {
        let (text, here) = (line.trim_start(), indent(line));
        // Behind a long `where` the brace stands alone, in the column of its `impl`.
        if here < inside {
            let head = text.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("unsafe ");
            if head.starts_with("impl") || head.starts_with("trait ") {
                return true;
            }
            if !(text == "{" || text == "where") {
                return false;
            }
            inside = here + 1;
        }
    }
    false
}

/// Names that still stand for more than two types, and for how many. The list only shrinks: an entry goes as soon as its types have names of
/// their own, and none is added.
const CROWDED_NAMES: &[(&str, usize)] = &[];

#[test]
fn a_type_has_a_name_of_its_own() {
    assert_eq!(declared_type("    pub(crate) unsafe trait Element: Copy {"), Some("Element"));
    assert_eq!(declared_type("pub struct Layout<'a> {"), Some("Layout"));
    assert_eq!(declared_type("type_of::<T>();"), None);
    let block = ["impl<T> Deref for Guard<T>", "where", "    T: Copy,", "{", "    type Target = T;", "}", "type Target = u8;"];
    assert!(is_associated(&block, 4) && !is_associated(&block, 6));
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    let mut counts = std::collections::BTreeMap::<String, usize>::new();
    for path in all {
        let text = fs::read_to_string(&path).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            if let Some(name) = declared_type(line)
                && !(line.trim_start().contains("type ") && is_associated(&lines, i))
            {
                *counts.entry(name.to_string()).or_default() += 1;
            }
        }
    }
    assert!(counts.len() > 500, "found only {} types", counts.len());
    let crowded: Vec<(&str, usize)> = counts.iter().filter(|(_, n)| **n > 2).map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(crowded, CROWDED_NAMES, "a name stands more than twice, or CROWDED_NAMES has to shrink");
}

#[test]
fn a_folder_says_what_is_in_it_and_what_is_not() {
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    let roots: Vec<&PathBuf> = all.iter().filter(|p| p.ends_with("mod.rs")).collect();
    assert!(roots.len() > 30);
    for path in roots {
        let text = fs::read_to_string(path).expect("text");
        let said: Vec<&str> = text.lines().map_while(|l| l.strip_prefix("//!").map(str::trim)).collect();
        assert!(said.len() > 1 && said.join(" ").contains("Not here:"), "{} says too little of its folder", path.display());
    }
}
