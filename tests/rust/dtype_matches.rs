//! Where the code matches dtypes one by one. A dtype is a row in each layer; everything else reads the row, or matches the `Number` or the loops
//! that it leads to. The list below may only shrink.

use rgrad_kernels::layout::DType;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The matches that name two or more dtypes in their arms: the file under src/, how many there are, and why they stay.
const LISTED: [(&str, usize, &str); 8] = [
    ("kernels/backend/cpu/common/cast/mod.rs", 1, "conversions of halves that have loops with instructions of their own"),
    ("kernels/backend/cpu/conv/compute.rs", 1, "convolutions load halves in their loops"),
    ("kernels/backend/cpu/elem.rs", 2, "the rows: what is computed in int32 and in float32"),
    ("kernels/backend/cpu/matmul/compute.rs", 3, "products of floats load halves in their loops"),
    ("kernels/backend/cpu/random/rejection.rs", 1, "two instances, and a refusal"),
    ("kernels/backend/wgpu/conv/mod.rs", 1, "numbers of two words in buffers of words"),
    ("kernels/backend/wgpu/wgsl/packed.rs", 1, "halves in buffers: WGSL has a type for one of the two"),
    ("kernels/layout/elem.rs", 1, "the rows: the Rust type of each dtype's elements"),
];

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

/// The text without comments and literals, so that brackets match.
fn code_of(text: &str) -> Vec<char> {
    let all: Vec<char> = text.chars().collect();
    let (mut out, mut i) = (Vec::with_capacity(all.len()), 0);
    while i < all.len() {
        let next = all.get(i + 1).copied().unwrap_or(' ');
        match all[i] {
            '/' if next == '/' => i += all[i..].iter().take_while(|c| **c != '\n').count(),
            '"' => {
                i += 1;
                while i < all.len() && all[i] != '"' {
                    i += if all[i] == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            // A character, not a lifetime.
            '\'' if next == '\\' => i += 2 + all[i + 2..].iter().take_while(|c| **c != '\'').count() + 1,
            '\'' if all.get(i + 2) == Some(&'\'') => i += 3,
            c => {
                out.push(c);
                i += 1;
            }
        }
    }
    out
}

/// The patterns of the arms of the match whose keyword ends at `at`. None: no body.
fn patterns(code: &[char], at: usize) -> Option<Vec<String>> {
    let mut depth = 0;
    let open = (at..code.len()).find(|i| {
        match code[*i] {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth == 0 && code[*i] == '{'
    })?;
    let (mut found, mut pattern, mut in_pattern, mut braced, mut depth) = (Vec::new(), String::new(), true, false, 1);
    let mut i = open + 1;
    while i < code.len() && depth > 0 {
        let c = code[i];
        if in_pattern && depth == 1 && c == '=' && code.get(i + 1) == Some(&'>') {
            found.push(std::mem::take(&mut pattern));
            in_pattern = false;
            braced = code[i + 2..].iter().find(|c| !c.is_whitespace()) == Some(&'{');
            i += 2;
            continue;
        }
        match c {
            // A macro's repetition of arms: its end is taken for that of the match.
            '(' if in_pattern && pattern.trim() == "$" => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if in_pattern {
            pattern.push(c);
        } else if depth == 1 && (c == ',' || c == '}' && braced) {
            in_pattern = true;
        }
        i += 1;
    }
    Some(found)
}

/// How many matches of a file name two or more dtypes.
fn matches(text: &str) -> usize {
    let code = code_of(text);
    let plain: String = code.iter().collect();
    let is_word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || *c == '_' || *c == '!');
    let starts = |i: &usize| {
        code[*i..].starts_with(&['m', 'a', 't', 'c', 'h']) && !is_word(i.checked_sub(1).map(|i| &code[i])) && !is_word(code.get(i + 5))
    };
    // Variants may have been imported, or be a macro's.
    let short = plain.contains("DType::{") || plain.contains("DType::*") || plain.contains("DType::$");
    let names: Vec<String> = DType::ALL.iter().map(|d| format!("{d:?}")).collect();
    let named = |patterns: &[String]| {
        let all: Vec<&str> = patterns.iter().flat_map(|p| p.split(" if ").next()).collect();
        let whole = |text: &str, name: &str| {
            text.match_indices(name).any(|(at, _)| {
                let (before, after) = (&text[..at], text[at + name.len()..].chars().next());
                let alone = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_') && !after.is_some_and(char::is_alphanumeric);
                alone && (before.ends_with("DType::") || short && !before.ends_with(':'))
            })
        };
        names.iter().filter(|n| all.iter().any(|p| whole(p, n))).count() >= 2 || all.iter().any(|p| p.contains("DType::$"))
    };
    (0..code.len()).filter(starts).filter(|i| patterns(&code, i + 5).is_some_and(|p| named(&p))).count()
}

#[test]
fn dtypes_are_matched_only_where_it_is_listed() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&src, &mut all);
    let mut found = BTreeMap::new();
    for path in all {
        let name = path.strip_prefix(&src).expect("below src").to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(&path).expect("text");
        // The table of dtypes is the row itself.
        let n = if name == "kernels/layout/dtype.rs" { 0 } else { matches(&text) };
        if n > 0 {
            found.insert(name, n);
        }
    }
    let listed: BTreeMap<String, usize> = LISTED.iter().map(|(file, n, _)| ((*file).to_string(), *n)).collect();
    assert_eq!(found, listed, "matches over dtypes: read the dtype's row or its Number instead; what has gone is taken out of the list");
}

#[test]
fn matches_are_found_in_all_their_forms() {
    assert_eq!(matches("match d { DType::F32 => 1, DType::F64 => { 2 } _ => 3 }"), 1);
    assert_eq!(matches("match (d, x) { (DType::F32 | DType::F64, _) if y => f(|a| { a }), _ => 0 }"), 1);
    assert_eq!(matches("use DType::{F16, F32}; match d { F16 => 1, F32 => \"}\" }"), 1);
    assert_eq!(matches("match x { A => match d { DType::I8 => 1, DType::I16 => 2 }, B => 1 }"), 1);
    assert_eq!(matches("match d { $($crate::layout::DType::$D => 1,)+ }"), 1);
    assert_eq!(matches("match d { DType::F32 => DType::F64, _ => DType::F16 } match k { K::F32 => 1, K::F64 => 2 }"), 0);
    assert_eq!(matches("// match d { DType::F32 => 1, DType::F64 => 2 }\nmatch d { d if d == DType::F32 => 1, _ => 2 }"), 0);
}
