//! Strided iteration: how an index becomes the offsets of several operands, on the host and in WGSL.

use crate::backend::wgpu::device::dispatch::FAULT;
use crate::backend::wgpu::{Bindings, BufferView};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::fmt::Write;

/// Invocations of a workgroup: what every adapter offers.
pub(in crate::backend::wgpu) const GROUP: usize = 256;

/// The words that a dispatch gives to its shader.
pub(in crate::backend::wgpu) type Params = SmallVec<[u32; 48]>;

/// The dimensions of an iteration, outermost first, with the strides of `N` operands. Dimensions of size 1 are left out, and neighbours
/// that are contiguous with each other in every operand are merged.
#[derive(Debug, Clone)]
pub(in crate::backend::wgpu) struct StridedWalk<const N: usize>(SmallVec<[(usize, [isize; N]); 6]>);

impl<const N: usize> StridedWalk<N> {
    /// In this order: index `i` stands for the `i`-th element in row-major order of the dimensions.
    pub(in crate::backend::wgpu) fn ordered(dims: impl Iterator<Item = (usize, [isize; N])>) -> Self {
        let mut out: SmallVec<[(usize, [isize; N]); 6]> = SmallVec::new();
        for (size, strides) in dims.filter(|d| d.0 != 1) {
            match out.last_mut() {
                Some(last) if (0..N).all(|k| last.1[k] == strides[k] * size as isize) => *last = (last.0 * size, strides),
                _ => out.push((size, strides)),
            }
        }
        StridedWalk(out)
    }

    /// In the memory order of the first operand, for a loop that may visit elements in any order.
    pub(in crate::backend::wgpu) fn unordered(dims: impl Iterator<Item = (usize, [isize; N])>) -> Self {
        let mut dims: SmallVec<[(usize, [isize; N]); 6]> = dims.filter(|d| d.0 != 1).collect();
        dims.sort_by_key(|d| std::cmp::Reverse(d.1.map(isize::unsigned_abs)));
        StridedWalk::ordered(dims.into_iter())
    }

    /// Sizes and strides, outermost first.
    pub(in crate::backend::wgpu) fn dims(&self) -> &[(usize, [isize; N])] {
        &self.0
    }

    pub(in crate::backend::wgpu) fn count(&self) -> usize {
        self.0.iter().map(|d| d.0).product()
    }

    pub(in crate::backend::wgpu) fn rank(&self) -> u32 {
        self.0.len() as u32
    }

    /// The innermost strides, summed over the operands; the largest number if there is no dimension.
    pub(in crate::backend::wgpu) fn step(&self) -> usize {
        self.0.last().map_or(usize::MAX, |d| d.1.iter().map(|s| s.unsigned_abs()).sum())
    }

    /// The same dimensions, for the first operand alone.
    pub(in crate::backend::wgpu) fn first(&self) -> StridedWalk<1> {
        StridedWalk(self.0.iter().map(|(size, s)| (*size, [s[0]])).collect())
    }

    /// Appends sizes and strides, as `wgsl` reads them.
    pub(in crate::backend::wgpu) fn push(&self, params: &mut Params) {
        for (size, strides) in &self.0 {
            params.push(*size as u32);
            params.extend(strides.iter().map(|s| *s as u32));
        }
    }
}

/// Statements that add to the variables `offsets` what index `index` of a walk of rank `rank` amounts to; its sizes and strides are the
/// parameters from `first` on. Strides below 0 work because products and sums wrap around.
pub(in crate::backend::wgpu) fn wgsl(rank: u32, first: usize, index: &str, offsets: &[&str]) -> String {
    let mut s = String::new();
    let words = 1 + offsets.len();
    if rank == 0 {
        return s;
    }
    let _ = write!(s, "{{ var rest = {index}; ");
    for d in (0..rank as usize).rev() {
        let at = first + d * words;
        if d > 0 {
            let _ = write!(s, "{{ let q = rest / {0}; let i = rest - q * {0}; ", param(at));
        } else {
            s.push_str("{ let i = rest; ");
        }
        for (k, o) in offsets.iter().enumerate() {
            let _ = write!(s, "{o} += i * {}; ", param(at + 1 + k));
        }
        s.push_str(if d > 0 { "rest = q; } " } else { "} " });
    }
    s.push_str("}\n");
    s
}

/// The expression that reads a word of the parameters.
pub(in crate::backend::wgpu) fn param(i: usize) -> String {
    format!("params[{}u].{}", i / 4, ["x", "y", "z", "w"][i % 4])
}

/// Declares the buffers, one for each binding, as `b0`, `b1`, ... of the element types given (a binding may be named more than once, with
/// one type), and the parameters.
pub(in crate::backend::wgpu) fn header(types: &[(u32, &str)], writes: impl Into<u128>, params: usize) -> String {
    let writes: u128 = writes.into();
    let mut s = String::new();
    let count = types.iter().map(|t| t.0 + 1).max().unwrap_or(0);
    for slot in 0..count {
        let Some((_, t)) = types.iter().find(|t| t.0 == slot) else { continue };
        let access = if writes >> slot & 1 == 1 { "read_write" } else { "read" };
        let _ = writeln!(s, "@group(0) @binding({slot}) var<storage, {access}> b{slot}: array<{t}>;");
    }
    let _ = writeln!(s, "@group(0) @binding({count}) var<uniform> params: array<vec4<u32>, {}>;", params.div_ceil(4));
    s
}

/// Declares what a checked shader reports faults by, behind the buffers and parameters of `header`.
pub(in crate::backend::wgpu) fn status(types: &[(u32, &str)]) -> String {
    let count = types.iter().map(|t| t.0 + 1).max().unwrap_or(0);
    format!("@group(0) @binding({}) var<storage, read_write> status: array<atomic<u32>>;\n{FAULT}", count + 1)
}

/// The start of a shader's entry point, up to the opening brace, with the linear index `group` of the workgroup and `lid` of the
/// invocation in it.
pub(in crate::backend::wgpu) fn entry() -> String {
    entry_sized(GROUP)
}

/// As `entry`, for workgroups of `size` invocations.
pub(in crate::backend::wgpu) fn entry_sized(size: usize) -> String {
    format!(
        "@compute @workgroup_size({size})\n\
         fn main(@builtin(workgroup_id) wid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lid: u32) {{\n\
         let group = wid.x + wid.y * groups.x;\n"
    )
}

/// The statement that `main` begins with where it may call the library's functions of f32: parameter `zero` is 0.
pub(in crate::backend::wgpu) fn unknown(zero: usize) -> String {
    format!("unknown = {};", param(zero))
}

/// How elements of a dtype are typed in a buffer.
pub(in crate::backend::wgpu) use crate::backend::wgpu::elem::value as element;

/// Checks that the elements can be counted in 31 bits and their offsets computed in 32 bits, as shaders do.
pub(in crate::backend::wgpu) fn check(op: &str, v: &BufferView<'_>) -> Result<()> {
    check_count(op, v.shape.iter().product())?;
    check_reach(op, v)
}

/// As `check`, of a count alone.
pub(in crate::backend::wgpu) fn check_count(op: &str, count: usize) -> Result<()> {
    if count > i32::MAX as usize {
        return Err(Error::not_implemented(format!(
            "{op}: got {count} elements; on wgpu at most {} are supported: work on parts of the tensor, or move it with .cpu()",
            i32::MAX
        )));
    }
    Ok(())
}

/// As `check`, of the offsets alone.
pub(in crate::backend::wgpu) fn check_reach(op: &str, v: &BufferView<'_>) -> Result<()> {
    let reach = v.shape.iter().zip(v.strides).map(|(n, s)| n.saturating_sub(1) * s.unsigned_abs()).sum::<usize>() + v.offset;
    if reach > u32::MAX as usize {
        return Err(Error::not_implemented(format!(
            "{op}: got a tensor that reaches to element {reach} of its memory; on wgpu at most element {} is supported: work on a smaller \
             tensor, or move it with .cpu()",
            u32::MAX
        )));
    }
    Ok(())
}

/// Bindings by slot, for a shader's key: four bits each.
pub(in crate::backend::wgpu) fn slots(of: &[u32], bindings: &Bindings<'_>) -> [u32; 2] {
    (of.iter().enumerate().fold(0, |w, (i, s)| w | s << (4 * i)), bindings.writes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_lie_as_one_are_one() {
        let w = StridedWalk::ordered([(2, [12]), (3, [4]), (1, [7]), (4, [1])].into_iter());
        assert_eq!(&w.0[..], [(24, [1])]);
        let w = StridedWalk::ordered([(2, [12, 0]), (3, [4, 0]), (4, [1, 1])].into_iter());
        assert_eq!(&w.0[..], [(6, [4, 0]), (4, [1, 1])]);
        let w = StridedWalk::unordered([(4, [1]), (2, [12]), (3, [4])].into_iter());
        assert_eq!((&w.0[..], w.count(), w.step()), (&[(24, [1])][..], 24, 1));
    }
}
