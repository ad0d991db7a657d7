//! The language of shaders: element types, a library of functions in WGSL, and the scalar language as expressions of WGSL. Not here: whole
//! shaders, which each family of kernels generates.
//!
//! # The library
//! `with_library` adds to a shader the functions that it calls, found by name. Besides arithmetic on int64 (`i64_add`, `i64_mul`, `i64_lt`,
//! ...) and uint8 there are functions of f32 that WGSL lacks, specifies loosely, or leaves to drivers that assume nan and infinity do not
//! occur: `f32_lt`, `f32_max`, `f32_exp`, `f32_log1p`, `f32_sin`, `f32_fmod`, ... They hold for every f32, special values included
//! (subnormals are as the device treats them), and are within 3.2 units in the last place; quotients and square roots are correctly
//! rounded. The same functions of f64, `f64_exp` and so on, are within 1.5 units; they need an adapter that has 64-bit floats and 64-bit
//! integers (for their bits). Functions of complex numbers, `c64_exp` and so on, are within 8 units in the last place of the number's size.
//!
//! # A zero that is opaque to the compiler Drivers may fuse, reorder and fold arithmetic on floats as if it were exact and finite.
//! `f32_keep(x)` is `x` and prevents that: it xors the bits with `unknown`, a variable that `main` sets to zero from a parameter. So a
//! shader whose source mentions any function of the library for floats begins with `unknown = params[..]..;` where that word is 0.
//! (`f32_lit(bits)` is a number in the same way.)

pub mod expr;
pub mod packed;
#[cfg(test)]
pub(super) mod validate;

use std::collections::HashMap;
use std::sync::OnceLock;

/// The library's files: items (`fn`, `const`, `var`) with a blank line between them and none inside.
const FILES: [&str; 14] = [
    include_str!("f32_base.wgsl"),
    include_str!("half.wgsl"),
    include_str!("int64.wgsl"),
    include_str!("f32_exp_log.wgsl"),
    include_str!("f32_trig.wgsl"),
    include_str!("f32_erf.wgsl"),
    include_str!("c64_base.wgsl"),
    include_str!("c64_exp_log.wgsl"),
    include_str!("c64_trig.wgsl"),
    include_str!("f64_base.wgsl"),
    include_str!("f64_exp.wgsl"),
    include_str!("f64_log.wgsl"),
    include_str!("f64_trig.wgsl"),
    include_str!("f64_erf.wgsl"),
];

struct Item {
    /// Place in the library.
    at: usize,
    text: String,
    names: Vec<String>,
}

/// The identifiers of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

fn library() -> &'static HashMap<String, Item> {
    static LIBRARY: OnceLock<HashMap<String, Item>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut items = HashMap::new();
        for chunk in FILES.iter().flat_map(|f| f.split("\n\n")) {
            let code: Vec<&str> = chunk.lines().filter(|l| !l.trim_start().starts_with("//") && !l.trim().is_empty()).collect();
            let Some(head) = code.first() else { continue };
            let mut head_words = words(head);
            let name = match head_words.next() {
                Some("var") => head_words.nth(1),
                _ => head_words.next(),
            };
            let Some(name) = name else { continue };
            let text = code.join("\n");
            let names = words(&text).filter(|w| *w != name).map(str::to_owned).collect();
            items.insert(name.to_owned(), Item { at: items.len(), text, names });
        }
        items
    })
}

/// The shader `body` with the functions of the library that it calls, directly or not.
pub fn with_library(body: &str) -> String {
    let library = library();
    let mut found: Vec<&Item> = Vec::new();
    let mut open: Vec<&Item> = words(body).filter_map(|w| library.get(w)).collect();
    while let Some(item) = open.pop() {
        if !found.iter().any(|f| f.at == item.at) {
            found.push(item);
            open.extend(item.names.iter().filter_map(|w| library.get(w)));
        }
    }
    found.sort_by_key(|item| item.at);
    let mut out = String::with_capacity(body.len() + found.iter().map(|f| f.text.len() + 1).sum::<usize>());
    for item in found {
        out.push_str(&item.text);
        out.push('\n');
    }
    out.push_str(body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shader_gets_what_it_calls_and_no_more() {
        let s = with_library("fn main() { let x = f32_lt(1.0, 2.0); }");
        for name in ["fn f32_lt(", "fn f32_is_nan(", "fn f32_order("] {
            assert_eq!(s.matches(name).count(), 1, "{name}");
        }
        assert!(!s.contains("f32_max") && !s.contains("i64_"));
        assert_eq!(with_library("fn main() {}"), "fn main() {}");
    }

    #[test]
    fn every_function_of_the_library_compiles() {
        for (name, item) in library() {
            if item.text.starts_with("fn") {
                let source = with_library(&format!("@compute @workgroup_size(64)\nfn main() {{ unknown = 0u; }}\n// {name}"));
                assert!(source.contains(&format!("fn {name}(")));
                validate::check(name, &source);
            }
        }
    }

    #[test]
    fn every_item_of_the_library_has_a_name() {
        let chunks = FILES.iter().flat_map(|f| f.split("\n\n")).filter(|c| c.lines().any(|l| !l.starts_with("//") && !l.trim().is_empty()));
        assert_eq!(library().len(), chunks.count());
        assert!(library().keys().all(|name| library()[name].text.contains(name.as_str())));
    }
}
