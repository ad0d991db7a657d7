//! Memory formats: the orders in which the dimensions of an image lie in memory. Not here: copies (`array`).

use super::{Dims, Layout};
use crate::error::{Error, Result};

/// An order of dimensions in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryFormat {
    /// Row-major.
    Contiguous,
    /// As it is.
    Preserve,
    /// (N, C, H, W) as (N, H, W, C).
    ChannelsLast,
    /// (N, C, D, H, W) as (N, D, H, W, C).
    ChannelsLast3d,
}

impl MemoryFormat {
    pub const ALL: [MemoryFormat; 4] =
        [MemoryFormat::Contiguous, MemoryFormat::Preserve, MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d];

    pub fn name(self) -> &'static str {
        match self {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        }
    }

    /// The format with the channels behind all of `dims` spatial dimensions.
    pub fn channels_last(dims: usize) -> Option<MemoryFormat> {
        match dims {
            2 => Some(MemoryFormat::ChannelsLast),
            3 => Some(MemoryFormat::ChannelsLast3d),
            _ => None,
        }
    }

    fn rank(self) -> Option<usize> {
        match self {
            MemoryFormat::Contiguous | MemoryFormat::Preserve => None,
            MemoryFormat::ChannelsLast => Some(4),
            MemoryFormat::ChannelsLast3d => Some(5),
        }
    }

    /// Refuses other ranks than the format's.
    pub fn check(self, rank: usize) -> Result<()> {
        match self.rank() {
            Some(r) if r != rank => Err(Error::runtime(format!("required rank {r} tensor to use {} format", self.name()))),
            _ => Ok(()),
        }
    }

    /// The dimensions in the order of memory, outermost first, of a format that puts channels last. Dimensions that lead those of the format stay
    /// outermost.
    pub fn order(self, rank: usize) -> Option<Dims> {
        let lead = rank.checked_sub(self.rank()?)?;
        Some((0..=lead).chain(lead + 2..rank).chain([lead + 1]).collect())
    }
}

impl Layout {
    /// Whether the elements lie in this order without gaps.
    pub fn is_contiguous_as(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Contiguous | MemoryFormat::Preserve => self.is_contiguous(),
            channels_last if channels_last.rank() != Some(self.rank()) => false,
            channels_last => channels_last.order(self.rank()).is_some_and(|order| {
                let mut step = 1;
                order.iter().rev().all(|d| {
                    let fits = self.shape()[*d] == 1 || self.strides()[*d] == step;
                    step *= if self.shape()[*d] == 1 { 1 } else { self.shape()[*d] as isize };
                    fits
                })
            }),
        }
    }

    /// Whether strides say that channels come last. Where sizes of 1 leave it open, they do not (as in PyTorch's `suggest_memory_format`).
    fn suggests(&self, format: MemoryFormat) -> bool {
        let Some(order) = format.order(self.rank()).filter(|_| format.rank() == Some(self.rank())) else { return false };
        let (shape, strides) = (self.shape(), self.strides());
        if strides[1] == 0 {
            return false;
        }
        let mut least = 0;
        order.iter().rev().all(|d| {
            let (n, s) = (shape[*d], strides[*d]);
            let fits = n > 0 && s >= least && !(*d == 0 && least == strides[1]);
            least = if n > 1 { s.saturating_mul(n as isize) } else { s };
            fits
        })
    }

    /// The format that results of operations on images should have.
    pub fn suggested_format(&self) -> MemoryFormat {
        [MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d]
            .into_iter()
            .find(|f| self.suggests(*f))
            .unwrap_or(MemoryFormat::Contiguous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize], strides: &[isize]) -> Layout {
        Layout::from_parts(shape.iter().copied().collect(), strides.iter().copied().collect(), 0).unwrap()
    }

    #[test]
    fn formats_of_strides() {
        let last = layout(&[2, 3, 4, 5], &[60, 1, 15, 3]);
        assert!(last.is_contiguous_as(MemoryFormat::ChannelsLast) && !last.is_contiguous());
        assert_eq!(last.suggested_format(), MemoryFormat::ChannelsLast);
        // Sizes of 1 leave the order open.
        let open = layout(&[2, 3, 1, 1], &[3, 1, 1, 1]);
        assert!(open.is_contiguous_as(MemoryFormat::ChannelsLast) && open.is_contiguous());
        assert_eq!(open.suggested_format(), MemoryFormat::Contiguous);
        let rows = layout(&[2, 3, 4, 5], &[60, 20, 5, 1]);
        assert_eq!((rows.suggested_format(), rows.is_contiguous_as(MemoryFormat::ChannelsLast)), (MemoryFormat::Contiguous, false));
        let part = layout(&[2, 3, 4, 4], &[60, 1, 15, 3]);
        assert!(!part.is_contiguous_as(MemoryFormat::ChannelsLast));
        assert_eq!(part.suggested_format(), MemoryFormat::ChannelsLast);
        assert_eq!(layout(&[1, 2, 3, 4, 5], &[120, 1, 40, 10, 2]).suggested_format(), MemoryFormat::ChannelsLast3d);
        assert!(MemoryFormat::ChannelsLast.check(3).is_err() && MemoryFormat::Preserve.check(3).is_ok());
    }
}
