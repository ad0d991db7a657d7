//! The filters, and where the places of a transformed tile lie.
//!
//! Along one side, a tile of two results reads N elements with K weights in R products. Of stride 1 these are F(2, 3), with N = R = 4, and
//! F(2, 2), with N = R = 3:
//!
//! ```text
//! y0 = (x0 - x1) w0 + x1 (w0 + w1),   y1 = x1 (w0 + w1) + (x2 - x1) w1
//! ```
//!
//! A convolution by 2 is the sum of two of stride 1: even weights meet even elements, and odd ones odd ones. With four weights both are F(2, 2),
//! with three the even ones are, and the odd one is a product for each result. The products of a place are added up in one matrix product, whose
//! depth is as many times the channels: the places are the three of F(2, 2), with two products each of four weights (N = 6), and with two, one
//! and two products of three weights (N = 5).

use super::APART;
use crate::backend::cpu::conv::geometry::Axis;

/// A number of weights along both sides, and a stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filter {
    Three,
    Two,
    ThreeByTwo,
    FourByTwo,
}

/// The most elements of a tile, places, and weights.
pub(super) const ITEMS: usize = 36;
pub(super) const PLACES: usize = 16;
pub(super) const TAPS: usize = 16;

impl Filter {
    /// The filter of a grid with these axes, in any order of the taps.
    pub fn of(axes: [&Axis; 2]) -> Option<Filter> {
        let [a, b] = axes.map(|axis| {
            let is_dense = axis.most() - axis.least() + 1 == axis.taps.len() as isize;
            (is_dense, axis.stride, axis.taps.len())
        });
        match a {
            (true, 1, 3) if a == b => Some(Filter::Three),
            (true, 1, 2) if a == b => Some(Filter::Two),
            (true, 2, 3) if a == b => Some(Filter::ThreeByTwo),
            (true, 2, 4) if a == b => Some(Filter::FourByTwo),
            _ => None,
        }
    }

    /// What it takes to transform 16 items, or places, of a tile of one channel or row, in multiply-adds. Tiles of a convolution by 2 have four
    /// times the elements of the image.
    pub fn tile_cost(self, phases: usize) -> usize {
        match self {
            Filter::ThreeByTwo | Filter::FourByTwo => 240,
            Filter::Two if phases > 1 => 200,
            Filter::Three | Filter::Two => 150,
        }
    }

    /// What it takes to transform a weight where 16 items take so much. Those of convolutions by 2 were measured to take longer than their number
    /// says.
    pub fn weight_cost(self, sixteen: usize) -> usize {
        let cost = sixteen * self.items() / 16;
        if matches!(self, Filter::ThreeByTwo | Filter::FourByTwo) { cost * 8 / 5 } else { cost }
    }

    /// Weights along a side.
    pub fn weights(self) -> usize {
        match self {
            Filter::Two => 2,
            Filter::Three | Filter::ThreeByTwo => 3,
            Filter::FourByTwo => 4,
        }
    }

    /// For each element along a side of a transformed tile its place.
    pub fn side(self) -> &'static [usize] {
        match self {
            Filter::Three => &[0, 1, 2, 3],
            Filter::Two => &[0, 1, 2],
            Filter::ThreeByTwo => &[0, 0, 1, 2, 2],
            Filter::FourByTwo => &[0, 0, 1, 1, 2, 2],
        }
    }

    /// Elements along a side of a tile.
    pub fn elements(self) -> usize {
        self.side().len()
    }

    /// Elements of a tile.
    pub fn items(self) -> usize {
        self.elements().pow(2)
    }

    /// Places along a side.
    pub fn places_of_side(self) -> usize {
        if self == Filter::Three { 4 } else { 3 }
    }

    pub fn places(self) -> usize {
        self.places_of_side().pow(2)
    }

    /// The place of an item.
    pub fn place(self, item: usize) -> usize {
        let (side, n) = (self.side(), self.elements());
        side[item / n] * self.places_of_side() + side[item % n]
    }
}

/// Where one element of a transformed tile, or weight, lies: from the start, and how far it is to that of the next panel, or row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Item {
    pub at: usize,
    pub step: usize,
}

/// Where a place begins, and how many items it has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SlabPlace {
    pub at: usize,
    pub depth: usize,
}

/// How transformed tiles, or weights, lie in memory: place by place, panel by panel (or row by row), item by item, channel by channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slabs {
    pub places: [SlabPlace; PLACES],
    pub items: [Item; ITEMS],
    /// All elements.
    pub size: usize,
}

impl Slabs {
    pub fn of_weights(filter: Filter, rows: usize, channels: usize) -> Slabs {
        Slabs::new(filter, rows * channels, channels)
    }

    pub fn of_tiles(filter: Filter, panels: usize, channels: usize, width: usize) -> Slabs {
        Slabs::new(filter, panels * channels * width, channels * width)
    }

    /// An item has `unit` elements, of which `run` are in one panel.
    fn new(filter: Filter, unit: usize, run: usize) -> Slabs {
        let (mut places, mut items) = ([SlabPlace::default(); PLACES], [Item::default(); ITEMS]);
        let mut position = [0; ITEMS];
        for i in 0..filter.items() {
            let depth = &mut places[filter.place(i)].depth;
            position[i] = *depth;
            *depth += 1;
        }
        let mut size = 0;
        for place in &mut places[..filter.places()] {
            place.at = size;
            size += place.depth * unit + APART;
        }
        for i in 0..filter.items() {
            let place = places[filter.place(i)];
            items[i] = Item { at: place.at + position[i] * run, step: place.depth * run };
        }
        Slabs { places, items, size }
    }
}
