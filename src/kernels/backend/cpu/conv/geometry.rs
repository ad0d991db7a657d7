//! Which elements of an image make up its patches. The passes forward and backward differ here alone: a `Patches` says for each position of
//! a grid and each tap of a kernel where the element lies that they meet at.
//!
//! The gradient of the input is a sum over patches of the output's gradient, too. With strides it falls into phases: positions that are a
//! stride apart meet the same taps, and the grid of one phase reads the gradient with stride 1.

use crate::call::ConvShape;
use smallvec::SmallVec;
use std::ops::Range;

/// One dimension: position `o` and tap `t` meet at element `o * stride + taps[t].0` of `size`; outside there are zeros.
#[derive(Debug, Clone)]
pub(in crate::backend::cpu) struct Axis {
    /// Positions.
    pub out: usize,
    pub stride: usize,
    pub size: usize,
    /// The shift of each tap, and its place in the kernel.
    pub taps: SmallVec<[(isize, usize); 8]>,
}

impl Axis {
    pub fn least(&self) -> isize {
        self.taps.iter().map(|t| t.0).min().unwrap_or(0)
    }

    pub fn most(&self) -> isize {
        self.taps.iter().map(|t| t.0).max().unwrap_or(0)
    }
}

/// The grid of positions, the taps, and the image that they read.
#[derive(Debug, Clone)]
pub(in crate::backend::cpu) struct Patches {
    pub batch: usize,
    pub axes: [Axis; 3],
    /// Elements between the images of a batch.
    pub image: usize,
}

/// Where the results of a grid go: position `o` of dimension `d` to `first[d] + o * step[d]` of an image of these sizes.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cpu) struct Places {
    pub sizes: [usize; 3],
    pub first: [usize; 3],
    pub step: [usize; 3],
    /// Elements between the images of a batch.
    pub image: usize,
}

impl Places {
    /// Where the row of positions begins.
    pub fn row(&self, n: usize, d: usize, h: usize, w: usize) -> isize {
        let at = |i: usize, o: usize| self.first[i] + o * self.step[i];
        (n * self.image + (at(0, d) * self.sizes[1] + at(1, h)) * self.sizes[2] + at(2, w)) as isize
    }
}

impl Patches {
    /// The patches of x that the kernel meets.
    pub fn forward(s: &ConvShape) -> Patches {
        let axis = |d: usize| Axis {
            out: s.output[d],
            stride: s.stride[d],
            size: s.input[d],
            taps: (0..s.kernel[d]).map(|k| ((k * s.dilation[d]) as isize - s.padding[d] as isize, k)).collect(),
        };
        Patches { batch: s.batch, axes: [axis(0), axis(1), axis(2)], image: s.groups * s.in_channels * s.input.iter().product::<usize>() }
    }

    /// The places of y.
    pub fn forward_places(s: &ConvShape) -> Places {
        Places { sizes: s.output, first: [0; 3], step: [1; 3], image: s.groups * s.out_channels * s.output.iter().product::<usize>() }
    }

    /// For each phase the patches of y's gradient, and the places of x.
    pub fn input(s: &ConvShape) -> Vec<(Patches, Places)> {
        // Beyond the size of x a stride has no phases.
        let phases = |d: usize| s.stride[d].min(s.input[d]);
        let axis = |d: usize, first: usize| {
            let stride = s.stride[d] as isize;
            let shift = |k: usize| (first + s.padding[d]) as isize - (k * s.dilation[d]) as isize;
            Axis {
                out: (s.input[d] - first).div_ceil(s.stride[d]),
                stride: 1,
                size: s.output[d],
                taps: (0..s.kernel[d]).filter(|k| shift(*k) % stride == 0).map(|k| (shift(k) / stride, k)).collect(),
            }
        };
        let mut made = Vec::new();
        for z in 0..phases(0) {
            for y in 0..phases(1) {
                for x in 0..phases(2) {
                    let patches = Patches {
                        batch: s.batch,
                        axes: [axis(0, z), axis(1, y), axis(2, x)],
                        image: s.groups * s.out_channels * s.output.iter().product::<usize>(),
                    };
                    let places = Places {
                        sizes: s.input,
                        first: [z, y, x],
                        step: s.stride,
                        image: s.groups * s.in_channels * s.input.iter().product::<usize>(),
                    };
                    made.push((patches, places));
                }
            }
        }
        made
    }

    /// The grid of tiles of 2x2 positions, in the last two dimensions; their patches have so many taps along each side, in order.
    pub fn in_tiles(&self, taps: usize) -> Patches {
        let tiled = |a: &Axis| Axis {
            out: a.out.div_ceil(2),
            stride: 2 * a.stride,
            size: a.size,
            taps: (0..taps).map(|k| (a.least() + k as isize, k)).collect(),
        };
        let [a, b, c] = &self.axes;
        Patches { batch: self.batch, axes: [a.clone(), tiled(b), tiled(c)], image: self.image }
    }

    /// The tiles of y's gradient, for a forward pass with stride 1.
    pub fn gradient_tiles(s: &ConvShape) -> Patches {
        let axis = |d: usize, stride: usize| Axis {
            out: s.output[d].div_ceil(stride),
            stride,
            size: s.output[d],
            taps: (0..stride).map(|k| (k as isize, k)).collect(),
        };
        let image = s.groups * s.out_channels * s.output.iter().product::<usize>();
        Patches { batch: s.batch, axes: [axis(0, 1), axis(1, 2), axis(2, 2)], image }
    }

    /// The same patches with the taps of both. They may differ in their taps along rows only.
    pub fn united(&self, other: &Patches) -> Patches {
        let mut all = self.clone();
        let [_, _, row] = &mut all.axes;
        row.taps.extend(other.axes[2].taps.iter().filter(|(shift, _)| self.axes[2].taps.iter().all(|(other, _)| other != shift)).copied());
        row.taps.sort_unstable();
        all
    }

    /// The index of each tap among the taps of `all`, which `united` made.
    pub fn taps_among(&self, all: &Patches) -> Vec<usize> {
        let [a, b, c] = &self.axes;
        let among: Vec<isize> = all.axes[2].taps.iter().map(|(shift, _)| *shift).collect();
        let in_row: Vec<usize> = c.taps.iter().filter_map(|(shift, _)| among.iter().position(|other| other == shift)).collect();
        (0..a.taps.len() * b.taps.len()).flat_map(|i| in_row.iter().map(|k| i * among.len() + k).collect::<Vec<_>>()).collect()
    }

    /// Positions of one image.
    pub fn positions(&self) -> usize {
        self.axes.iter().map(|a| a.out).product()
    }

    /// The images to which these positions, counted through all images, belong.
    pub fn images(&self, positions: &Range<usize>) -> Range<usize> {
        positions.start / self.positions()..positions.end.div_ceil(self.positions())
    }

    pub fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps.len()).product()
    }

    /// Elements of one channel of the image.
    pub fn plane(&self) -> usize {
        self.axes.iter().map(|a| a.size).product()
    }

    /// The place of each tap in the kernel, in the order of the patches.
    pub fn kernel_places(&self, kernel: [usize; 3]) -> Vec<usize> {
        let [a, b, c] = &self.axes;
        let mut places = Vec::with_capacity(self.taps());
        for z in &a.taps {
            for y in &b.taps {
                places.extend(c.taps.iter().map(|x| (z.1 * kernel[1] + y.1) * kernel[2] + x.1));
            }
        }
        places
    }

    /// Whether strips of it are not much larger than what is read from them. Kernels that reach far outside of small images are not.
    pub fn is_compact(&self) -> bool {
        let reach = |a: &Axis| (a.out.saturating_sub(1)) as f64 * a.stride as f64 + (a.most() as f64 - a.least() as f64) + 1.0;
        let whole: f64 = self.axes.iter().map(reach).product();
        whole <= 4.0 * (self.positions() as f64 * self.taps() as f64 + self.plane() as f64) + 4096.0
    }

    /// Whether a tap meets what is outside of the image.
    pub fn has_padding(&self) -> bool {
        self.axes.iter().any(|a| a.least() < 0 || (a.out.saturating_sub(1) * a.stride) as isize + a.most() >= a.size as isize)
    }

    /// Calls `f(column, n, d, h, w, length)` for the rows of the positions `first..end` of all images; columns count from `first`.
    pub fn each_row(&self, first: usize, end: usize, mut f: impl FnMut(usize, usize, usize, usize, usize, usize)) {
        let [od, oh, ow] = [0, 1, 2].map(|d| self.axes[d].out);
        let mut at = first;
        while at < end {
            let (row, w) = (at / ow, at % ow);
            let len = (ow - w).min(end - at);
            f(at - first, row / (od * oh), row / oh % od, row % oh, w, len);
            at += len;
        }
    }
}

/// A part of an image with its padding, in which each tap is a shift: the element that column `c` and tap `t` meet at lies at
/// `bases[c] + taps[t]`. Elements that are a stride apart along a row are made neighbours.
///
/// Where nothing has to be padded, it is the image itself.
#[derive(Debug)]
pub(super) struct Strip {
    first: usize,
    end: usize,
    /// The first image, and what the first position and the least tap meet at.
    image: usize,
    origin: [isize; 3],
    /// Images, and elements along the first two dimensions.
    counts: [usize; 3],
    /// Neighbours of a row that are together, for each remainder of the stride.
    part: usize,
    /// Elements between images, planes and rows.
    pitches: [usize; 3],
    /// The shift of each tap.
    pub taps: Vec<isize>,
    /// The elements of one channel; 0 if it is the image itself.
    pub size: usize,
    /// Where the image itself begins for column 0, from the channel's start in the first image of the batch.
    pub start: isize,
    pub rows: Vec<StripRow>,
    pub image_rows: Vec<ImageRow>,
    /// Elements of padding before each of the image's rows, and the elements that it has itself.
    pub left: usize,
    pub row_len: usize,
}

/// Columns that read neighbours in the strip.
#[derive(Debug, Clone, Copy)]
pub(super) struct StripRow {
    pub column: usize,
    pub base: isize,
    pub len: usize,
}

/// A row of the strip that begins at `to`, and where its first element from the image lies, from the channel's start in the first image.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageRow {
    pub to: usize,
    pub from: usize,
}

impl Strip {
    /// The strip of the positions `first..end`, of all images.
    pub fn new(p: &Patches, first: usize, end: usize, same: bool) -> Strip {
        let mut strip = Strip::sized(p, first, end, same);
        strip.find_rows(p);
        if strip.size > 0 {
            strip.find_image_rows(p);
        }
        strip
    }

    /// Without its rows.
    pub fn sized(p: &Patches, first: usize, end: usize, same: bool) -> Strip {
        let [od, oh, ow] = [0, 1, 2].map(|d| p.axes[d].out);
        let place = |c: usize| (c / (od * oh * ow), c / (oh * ow) % od, c / ow % oh, c % ow);
        let ((n, d, h, w), (n1, d1, h1, w1)) = (place(first), place(end - 1));
        // What several images, planes or rows are in whole.
        let (d, d1) = if n == n1 { (d, d1) } else { (0, od - 1) };
        let (h, h1) = if n == n1 && d == d1 { (h, h1) } else { (0, oh - 1) };
        let (w, w1) = if n == n1 && d == d1 && h == h1 { (w, w1) } else { (0, ow - 1) };
        let [a, b, c] = &p.axes;
        let least = [a.least(), b.least(), c.least()];
        let count = |axis: &Axis, steps: usize| steps * axis.stride + (axis.most() - axis.least()) as usize + 1;
        let counts = [n1 - n + 1, count(a, d1 - d), count(b, h1 - h)];
        let row = count(c, w1 - w);
        let origin = [(d * a.stride) as isize + least[0], (h * b.stride) as isize + least[1], (w * c.stride) as isize + least[2]];
        let fits = |d: usize, count: usize| origin[d] >= 0 && origin[d] as usize + count <= p.axes[d].size;
        let itself = same && c.stride == 1 && fits(0, counts[1]) && fits(1, counts[2]) && fits(2, row);
        let part = row.div_ceil(c.stride);
        let (pitches, size, start) = if itself {
            let start = (origin[0] * b.size as isize + origin[1]) * c.size as isize + origin[2];
            ([p.image, b.size * c.size, c.size], 0, (n * p.image) as isize + start)
        } else {
            let row = part * c.stride;
            // What is padding behind one row, or plane, is padding before the next one. Where columns begin stays in order.
            let shared = |axis: &Axis, origin: isize, count: usize| {
                let behind = origin + count as isize - axis.size as isize;
                (-origin).min(behind).clamp(0, axis.most() - axis.least()) as usize
            };
            let pitch = if c.stride == 1 { row - shared(c, origin[2], row) } else { row };
            let plane = (counts[2] - shared(b, origin[1], counts[2])) * pitch;
            let image = counts[1] * plane;
            let size = counts[0] * image + (counts[2] * pitch - plane) + (row - pitch);
            ([image, plane, pitch], size, 0)
        };
        let mut taps = Vec::with_capacity(p.taps());
        for z in &a.taps {
            for y in &b.taps {
                let from = (z.0 - least[0]) * pitches[1] as isize + (y.0 - least[1]) * pitches[2] as isize;
                taps.extend(c.taps.iter().map(|x| {
                    let shift = (x.0 - least[2]) as usize;
                    from + (shift % c.stride * part + shift / c.stride) as isize
                }));
            }
        }
        let (rows, image_rows) = (Vec::new(), Vec::new());
        Strip { first, end, image: n, origin, counts, part, pitches, taps, size, start, rows, image_rows, left: 0, row_len: 0 }
    }

    /// The rows of columns.
    fn find_rows(&mut self, p: &Patches) {
        let [a, b, c] = &p.axes;
        let (d0, h0) = (self.origin[0] - a.least(), self.origin[1] - b.least());
        let w0 = (self.origin[2] - c.least()) as usize / c.stride;
        let mut rows = Vec::new();
        p.each_row(self.first, self.end, |column, n, d, h, w, len| {
            let plane = (d * a.stride) as isize - d0;
            let row = (h * b.stride) as isize - h0;
            let base =
                ((n - self.image) * self.pitches[0] + w - w0) as isize + plane * self.pitches[1] as isize + row * self.pitches[2] as isize;
            rows.push(StripRow { column, base, len });
        });
        self.rows = rows;
    }

    /// The rows that the image has.
    fn find_image_rows(&mut self, p: &Patches) {
        let [a, b, c] = &p.axes;
        let (left, from) = ((-self.origin[2]).max(0) as usize, self.origin[2].max(0) as usize);
        let row = self.part * c.stride;
        self.left = left;
        self.row_len = c.size.saturating_sub(from).min(row.saturating_sub(left));
        if self.row_len == 0 {
            return;
        }
        let inside = |origin: isize, count: usize, size: usize| {
            let first = (-origin).clamp(0, count as isize);
            let end = (size as isize - origin).clamp(first, count as isize);
            first as usize..end as usize
        };
        let mut rows = Vec::new();
        // Of the first and the last of several images not all rows are read.
        let row_of = |column: usize| column / c.out % b.out * b.stride;
        let (first, end) = (row_of(self.first), row_of(self.end - 1) + (b.most() - b.least()) as usize + 1);
        let is_flat = a.out == 1 && self.counts[0] > 1;
        for n in 0..self.counts[0] {
            let mut ys = inside(self.origin[1], self.counts[2], b.size);
            if is_flat && n == 0 {
                ys.start = ys.start.max(first);
            }
            if is_flat && n + 1 == self.counts[0] {
                ys.end = ys.end.min(end);
            }
            for z in inside(self.origin[0], self.counts[1], a.size) {
                for y in ys.clone() {
                    let source = ((z as isize + self.origin[0]) as usize * b.size + (y as isize + self.origin[1]) as usize) * c.size + from;
                    let to = n * self.pitches[0] + z * self.pitches[1] + y * self.pitches[2];
                    rows.push(ImageRow { to, from: (self.image + n) * p.image + source });
                }
            }
        }
        self.image_rows = rows;
    }

    /// Elements from where the first column reads to where the last one does.
    pub fn span(&self) -> usize {
        let [first, .., last] = &self.rows[..] else { return self.rows.first().map_or(0, |row| row.len) };
        (last.base - first.base) as usize + last.len
    }

    /// Elements from the first tap of a column to its last one.
    pub fn reach(&self) -> usize {
        let ends = self.taps.iter().fold((isize::MAX, isize::MIN), |(a, b), t| (a.min(*t), b.max(*t)));
        ends.1.saturating_sub(ends.0).max(0) as usize
    }

    /// The stride along rows, and how many of its neighbours are together.
    pub fn parts(&self, p: &Patches) -> (usize, usize) {
        (p.axes[2].stride, self.part)
    }
}
