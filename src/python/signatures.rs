//! Text signatures that PyO3 cannot make: negative defaults, for which it writes `...`, and keywords that a function takes as `**kwargs`.
//!
//! `inspect.signature`, `help` and the stubs read them. `overrides::covers` puts them into the definitions. Signatures of pointwise and
//! declared functions come from their tables.

use super::overrides::keywords::takes_out;

/// The keywords of every function that creates a tensor.
const OPTIONS: &str = "dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False";

/// Defaults that PyO3 does not show: negative ones, and the value that a missing argument stands for. They hold for functions and methods.
/// An empty name stands for all functions.
const DEFAULTS: &[(&str, &str)] = &[
    ("", "alpha=1"),
    ("bernoulli_", "p=0.5"),
    ("cross_entropy", "ignore_index=-100"),
    ("diag_embed", "dim1=-2"),
    ("diag_embed", "dim2=-1"),
    ("diff", "dim=-1"),
    ("flatten", "end_dim=-1"),
    ("nll_loss", "ignore_index=-100"),
    ("norm", "p='fro'"),
    ("roll", "dims=()"),
    ("rot90", "dims=(0, 1)"),
    ("std", "unbiased=True"),
    ("std_mean", "unbiased=True"),
    ("tensordot", "dims=2"),
    ("var", "unbiased=True"),
    ("var_mean", "unbiased=True"),
];

/// Signatures of functions only. `+` stands for `OPTIONS`.
const FUNCTIONS: &[(&str, &str)] = &[
    ("arange", "*args, out=None, +"),
    ("conv1d", "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"),
    ("conv2d", "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"),
    ("conv3d", "input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1"),
    ("conv_transpose1d", "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"),
    ("conv_transpose2d", "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"),
    ("conv_transpose3d", "input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1"),
    ("empty", "*size, out=None, memory_format=None, +"),
    ("empty_like", "input, *, memory_format=None, +"),
    ("empty_strided", "size, stride, *, +"),
    ("eye", "n, m=None, *, out=None, +"),
    ("flip", "input, dims"),
    ("full", "size, fill_value, *, out=None, +"),
    ("full_like", "input, fill_value, *, memory_format=None, +"),
    ("linspace", "start, end, steps, *, out=None, +"),
    ("logspace", "start, end, steps, base=10.0, *, out=None, +"),
    ("normal", "mean, std=1.0, size=None, *, generator=None, out=None, +"),
    ("ones", "*size, out=None, +"),
    ("ones_like", "input, *, memory_format=None, +"),
    ("permute", "input, dims"),
    ("rand", "*size, generator=None, out=None, +"),
    ("rand_like", "input, *, generator=None, memory_format=None, +"),
    ("randint", "*args, generator=None, out=None, +"),
    ("randint_like", "input, *args, generator=None, memory_format=None, +"),
    ("randn", "*size, generator=None, out=None, +"),
    ("randn_like", "input, *, generator=None, memory_format=None, +"),
    ("randperm", "n, *, generator=None, out=None, +"),
    ("reshape", "input, shape"),
    ("scalar_tensor", "s, *, +"),
    ("split", "tensor, split_size_or_sections, dim=0"),
    ("tile", "input, dims"),
    ("tril_indices", "row, col, offset=0, *, +"),
    ("triu_indices", "row, col, offset=0, *, +"),
    ("zeros", "*size, out=None, +"),
    ("zeros_like", "input, *, memory_format=None, +"),
];

/// Signatures of methods only.
const METHODS: &[(&str, &str)] = &[
    ("new_empty", "*size, +"),
    ("new_full", "size, fill_value, *, +"),
    ("new_ones", "*size, +"),
    ("new_tensor", "data, *, +"),
    ("new_zeros", "*size, +"),
    // `from` is a keyword of Python, which no signature can contain.
    ("random_", "from_=None, /, to=None, *, generator=None"),
    ("uniform_", "from_=0.0, /, to=1.0, *, generator=None"),
];

fn find(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// The docstring of a function or method with its text signature in front, as CPython stores it; None if PyO3's is right.
pub(super) fn documented(name: &str, is_method: bool, doc: &str) -> Option<String> {
    let (made, body) = doc.split_once("\n--\n\n").unwrap_or(("", doc));
    let made = made.split_once('(').map_or("", |(_, rest)| rest.strip_suffix(')').unwrap_or(rest));
    let mut text = match find(if is_method { METHODS } else { FUNCTIONS }, name) {
        Some(text) if is_method => format!("$self, {text}"),
        Some(text) => text.to_string(),
        None => filled(name, made),
    };
    if takes_out(name, is_method) {
        text += if text.contains('*') { ", out=None" } else { ", *, out=None" };
    }
    let text = text.replace('+', OPTIONS);
    (text != made).then(|| format!("{name}({text})\n--\n\n{body}"))
}

/// A signature made by PyO3, with the defaults that it left out.
fn filled(name: &str, made: &str) -> String {
    let parts = made.split(", ").map(|part| {
        let parameter = part.strip_suffix("=...").or_else(|| part.strip_suffix("=None"))?;
        let known = |(f, shown): &&(&str, &'static str)| (f.is_empty() || *f == name) && shown.split('=').next() == Some(parameter);
        DEFAULTS.iter().find(known).map(|(_, shown)| *shown)
    });
    let parts: Vec<&str> = made.split(", ").zip(parts).map(|(part, shown)| shown.unwrap_or(part)).collect();
    parts.join(", ")
}
