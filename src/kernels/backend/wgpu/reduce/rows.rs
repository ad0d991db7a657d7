//! Rows that the invocations of a workgroup share: how many share one, and how their parts meet.
//!
//! A few invocations with many elements each are faster than a workgroup with a few each: barriers are shared by several rows, and every
//! invocation has many loads under way. Elements stay in registers, so memory is read once. All of this depends on sizes alone.

use crate::backend::wgpu::common::strided::GROUP;

/// Invocations that keep a large device busy.
const BUSY: usize = 1 << 16;
/// Elements of an invocation below which a row gets no more invocations.
const ENOUGH: usize = 4;
/// Invocations that read neighbouring elements with full use of memory transactions.
const WIDE: usize = 32;
/// Parts that an invocation merges between two barriers.
const RADIX: usize = 8;

/// How many invocations share a row, and how many elements each of them keeps in registers (powers of two): element `i` of invocation `y`
/// is element `y + i * shared` of the row. Elements below `each / 2` are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::backend::wgpu) struct RowTile {
    pub(in crate::backend::wgpu) shared: usize,
    pub(in crate::backend::wgpu) each: usize,
}

impl RowTile {
    /// For `count` rows of `n` neighbouring elements, at most `most` of them (a power of two) for each invocation; None for longer rows.
    pub(in crate::backend::wgpu) fn new(count: usize, n: usize, most: usize) -> Option<RowTile> {
        let wide = n.div_ceil(ENOUGH).next_power_of_two().min(WIDE);
        let mut shared = n.div_ceil(most).next_power_of_two().max(wide);
        if shared > GROUP {
            return None;
        }
        while shared < GROUP && count * shared < BUSY && n > ENOUGH * shared {
            shared *= 2;
        }
        Some(RowTile::of(n, shared))
    }

    /// Whether element `i` of an invocation may be missing.
    pub(in crate::backend::wgpu) fn is_checked(self, i: usize) -> bool {
        i >= self.each / 2
    }

    /// For `shared` invocations.
    pub(in crate::backend::wgpu) fn of(n: usize, shared: usize) -> RowTile {
        RowTile { shared, each: n.div_ceil(shared).max(1).next_power_of_two() }
    }
}

/// The products of the radices of a tree over `y` parts before each round, with the radix of that round.
fn rounds(y: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut done = 1;
    std::iter::from_fn(move || {
        let left = y / done;
        // 16 are 4 times 4, not 8 times 2.
        let radix = if left == 2 * RADIX { RADIX / 2 } else { left.min(RADIX) };
        let round = (done, radix);
        done *= radix;
        (radix > 1).then_some(round)
    })
}

/// Expressions merged as a balanced tree.
pub(in crate::backend::wgpu) fn tree(parts: &[String], merge: &dyn Fn(&str, &str) -> String) -> String {
    match parts {
        [one] => one.clone(),
        _ => {
            let (a, b) = parts.split_at(parts.len() / 2);
            merge(&tree(a, merge), &tree(b, merge))
        }
    }
}

/// Statements after which invocation 0 of each row finds in the variable `v` what all `shared` of them had there; neighbours among them,
/// whose number is the variable `y`, are `step` apart in `parts`, workgroup memory of one value for each invocation.
pub(in crate::backend::wgpu) fn gather(shared: usize, step: usize, v: &str, merge: &dyn Fn(&str, &str) -> String) -> String {
    if shared == 1 {
        return String::new();
    }
    let mut s = format!("parts[lid] = {v};\nworkgroupBarrier();\n");
    for (done, radix) in rounds(shared) {
        let next = shared / done / radix;
        let parts: Vec<String> = (0..radix).map(|i| format!("parts[lid + {}u]", i * next * step)).collect();
        // No other invocation reads what this one replaces.
        let keep = if next > 1 { format!("parts[lid] = {v}; ") } else { String::new() };
        s.push_str(&format!("if (y < {next}u) {{ {v} = {}; {keep}}}\n", tree(&parts, merge)));
        if next > 1 {
            s.push_str("workgroupBarrier();\n");
        }
    }
    s
}

/// How the parts of a row meet in `parts`, workgroup memory of two values for each invocation.
pub(in crate::backend::wgpu) struct Meeting {
    /// Invocations that share a row; the variable `y` is the number of one.
    shared: usize,
    /// How far apart neighbours among them are in the workgroup.
    step: usize,
    /// Rounds so far. They use the halves of the memory in turn: the barrier of one round is between the reads of the round before and the
    /// writes of the round after it.
    round: usize,
}

impl Meeting {
    pub(in crate::backend::wgpu) fn new(shared: usize, step: usize) -> Meeting {
        Meeting { shared, step, round: 0 }
    }

    pub(in crate::backend::wgpu) fn declaration(&self, value: &str) -> String {
        if self.shared > 1 { format!("var<workgroup> parts: array<{value}, {}>;\n", 2 * GROUP) } else { String::new() }
    }

    /// Statements after which each invocation of a row finds in the variable `v` what all of them had there, merged in the same order.
    pub(in crate::backend::wgpu) fn merge(&mut self, v: &str, merge: &dyn Fn(&str, &str) -> String) -> String {
        let mut s = String::new();
        for (done, radix) in rounds(self.shared) {
            let at = self.round % 2 * GROUP;
            let apart = done * self.step;
            let parts: Vec<String> = (0..radix).map(|i| format!("parts[first + {}u]", i * apart)).collect();
            s.push_str(&format!(
                "parts[{at}u + lid] = {v};\nworkgroupBarrier();\n\
                 {{ let first = {at}u + lid - (y / {done}u) % {radix}u * {apart}u; {v} = {}; }}\n",
                tree(&parts, merge)
            ));
            self.round += 1;
        }
        s
    }
}

#[cfg(test)]
pub(in crate::backend::wgpu) mod tests {
    use super::*;

    /// The workgroup memory of a shader.
    pub(in crate::backend::wgpu) fn workgroup_bytes(source: &str) -> u32 {
        let module = naga::front::wgsl::parse_str(source).expect("a shader");
        let mut layouter = naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).expect("sizes of types");
        let shared = module.global_variables.iter().filter(|(_, v)| v.space == naga::AddressSpace::WorkGroup);
        shared.map(|(_, v)| layouter[v.ty].size).sum()
    }

    #[test]
    fn tiles_hold_rows() {
        for count in [1, 100, 1 << 15] {
            for n in [1, 2, 3, 5, 16, 17, 33, 255, 1000, 1024, 1025, 4096, 8192] {
                for most in [8, 16, 32] {
                    let Some(t) = RowTile::new(count, n, most) else {
                        assert!(n > GROUP * most);
                        continue;
                    };
                    assert!(t.each <= most && t.shared <= GROUP && t.each * t.shared >= n, "{count} {n} {most} {t:?}");
                    assert!(t.each / 2 * t.shared <= n, "{count} {n} {most} {t:?}");
                }
            }
        }
        assert_eq!(RowTile::new(1 << 15, 1024, 32), Some(RowTile { shared: 32, each: 32 }));
        assert_eq!(RowTile::new(128, 1024, 32), Some(RowTile { shared: 256, each: 4 }));
    }

    #[test]
    fn parts_meet_once() {
        for log in 0..=8 {
            let (y, radices) = (1 << log, rounds(1 << log).collect::<Vec<_>>());
            assert_eq!(radices.iter().map(|r| r.1).product::<usize>(), y);
            assert!(radices.len() <= 3 && radices.iter().all(|r| r.1 <= RADIX), "{y} {radices:?}");
        }
    }
}
