//! The times of dispatches that a profiler watches: a pass with two timestamps for each, or, where the adapter takes none, the time from the
//! submission of a batch to its end as the host sees it.

use super::recorder::BATCH;
use crate::backend::wgpu::native::api::{Api, Fault, Signal};
use crate::backend::wgpu::native::types::{Buffer, COPY_DST, COPY_SRC, CommandEncoder, MAP_READ, QUERY_RESOLVE, QuerySet};
use crate::host::device_times::{DeviceRun, Watcher};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of the two times of a dispatch.
const TIMES: usize = 16;

/// The places for the times of one batch. Batches run one after the other, so one set serves all.
#[derive(Debug, Clone, Copy)]
struct Queries {
    set: QuerySet,
    resolved: Buffer,
    /// Nanoseconds of a tick.
    period: f64,
}

#[derive(Debug)]
struct WatchedDispatch {
    watcher: Watcher,
    op: &'static str,
    family: &'static str,
}

/// A batch that was submitted.
#[derive(Debug)]
pub(crate) struct TimedBatch {
    dispatches: Vec<WatchedDispatch>,
    submitted: Instant,
    /// Where the times arrive; None if the device takes none.
    pub(crate) staging: Option<Buffer>,
    pub(crate) signal: Arc<Signal>,
}

impl TimedBatch {
    /// Bytes of its times.
    pub(crate) fn bytes(&self) -> usize {
        self.dispatches.len() * TIMES
    }
}

fn capacity(dispatches: usize) -> usize {
    (dispatches * TIMES).next_power_of_two().max(256)
}

#[derive(Debug, Default)]
pub(crate) struct Timer {
    /// Whether the device takes timestamps.
    timestamps: bool,
    queries: Option<Queries>,
    /// The watched dispatches of the batch that is being recorded.
    watched: Vec<WatchedDispatch>,
    submitted: Vec<TimedBatch>,
}

impl Timer {
    pub(crate) fn new(timestamps: bool) -> Timer {
        Timer { timestamps, ..Timer::default() }
    }

    /// Notes a dispatch. Returns where its pass writes its times, if the device takes any.
    pub(crate) fn watch(
        &mut self,
        api: &Api,
        watcher: Watcher,
        op: &'static str,
        family: &'static str,
    ) -> Result<Option<(QuerySet, u32, u32)>, Fault> {
        if self.timestamps && self.queries.is_none() {
            let (queries, fault) = api.scoped(|| Queries {
                set: api.create_query_set(2 * BATCH as u32),
                resolved: api.create_buffer("rgrad times", BATCH * TIMES, QUERY_RESOLVE | COPY_SRC),
                period: f64::from(api.timestamp_period()),
            });
            if let Some(fault) = fault {
                return Err(fault);
            }
            self.queries = Some(queries);
        }
        let at = 2 * self.watched.len() as u32;
        self.watched.push(WatchedDispatch { watcher, op, family });
        Ok(self.queries.map(|q| (q.set, at, at + 1)))
    }

    /// Whether the batch that is being recorded has watched dispatches.
    pub(crate) fn is_watching(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Ends the commands of a batch with the copy of its times. The encoder has no open pass. Called with error scopes open.
    pub(crate) fn resolve(&self, api: &Api, encoder: CommandEncoder) -> Option<Buffer> {
        let queries = self.queries?;
        let dispatches = self.watched.len();
        let staging = api.create_buffer("rgrad times", capacity(dispatches), MAP_READ | COPY_DST);
        api.resolve(encoder, queries.set, 2 * dispatches as u32, queries.resolved);
        api.copy(encoder, (queries.resolved, 0), (staging, 0), dispatches * TIMES);
        Some(staging)
    }

    /// The batch was submitted at this time. Returns an error of the library, which leaves the batch without times.
    pub(crate) fn submitted(&mut self, api: &Api, at: Instant, staging: Option<Buffer>) -> Option<Fault> {
        let dispatches = std::mem::take(&mut self.watched);
        let bytes = dispatches.len() * TIMES;
        let (signal, fault) = api.scoped(|| match staging {
            Some(staging) => api.map_for_read(staging, bytes),
            None => api.when_done(),
        });
        if fault.is_none() {
            self.submitted.push(TimedBatch { dispatches, submitted: at, staging, signal });
        } else if let Some(staging) = staging {
            api.release_buffer(staging);
        }
        fault
    }

    /// The batch will not run.
    pub(crate) fn dropped(&mut self, api: &Api, staging: Option<Buffer>) {
        self.watched.clear();
        if let Some(staging) = staging {
            api.release_buffer(staging);
        }
    }

    /// The batches whose times have not been taken.
    pub(crate) fn take(&mut self) -> Vec<TimedBatch> {
        std::mem::take(&mut self.submitted)
    }

    /// Nanoseconds of a tick of the device's clock.
    pub(crate) fn period(&self) -> f64 {
        self.queries.map_or(1.0, |q| q.period)
    }

    /// Releases everything.
    pub(crate) fn close(&mut self, api: &Api) {
        for batch in self.take() {
            if let Some(staging) = batch.staging {
                api.release_buffer(staging);
            }
        }
        if let Some(queries) = self.queries.take() {
            api.release_buffer(queries.resolved);
            api.release_query_set(queries.set);
        }
    }
}

/// Tells the watchers about batches that have run, each with the bytes of its times (None without timestamps).
///
/// The device's clock has another zero than the host's. Taken is the earliest one with which no dispatch runs before its submission.
pub(crate) fn report(batches: Vec<(TimedBatch, Option<Vec<u8>>)>, period: f64) {
    let ticks = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |c| u64::from_ne_bytes(*c));
    let zero = batches.iter().find_map(|(_, times)| times.as_deref().map(ticks));
    let since = |tick: u64| Duration::from_nanos((tick.saturating_sub(zero.unwrap_or(0)) as f64 * period) as u64);
    let host_zero = batches
        .iter()
        .filter_map(|(batch, times)| Some(batch.submitted.checked_sub(since(ticks(times.as_deref()?))).unwrap_or(batch.submitted)))
        .max();
    for (batch, times) in batches {
        match (times, host_zero) {
            (Some(times), Some(host_zero)) => {
                for (d, both) in batch.dispatches.into_iter().zip(times.chunks_exact(TIMES)) {
                    let (start, end) = (host_zero + since(ticks(both)), host_zero + since(ticks(&both[8..])));
                    let (to, event) = d.watcher;
                    to.ran(DeviceRun { event, name: format!("{} ({})", d.op, d.family), start, end: end.max(start), by_host: false });
                }
            }
            _ => report_batch(batch),
        }
    }
}

/// The time of a whole batch, as the host saw it, for each of its watchers.
fn report_batch(batch: TimedBatch) {
    let end = batch.signal.at().unwrap_or(batch.submitted);
    let mut left = batch.dispatches;
    while let Some(first) = left.first() {
        let (to, event) = first.watcher.clone();
        let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|d| Arc::ptr_eq(&d.watcher.0, &to));
        let mut names: Vec<&str> = own.iter().map(|d| d.op).collect();
        names.dedup();
        let more = names.len().saturating_sub(4);
        names.truncate(4);
        let dots = if more > 0 { format!(" and {more} more") } else { String::new() };
        let name = format!("{} dispatches: {}{dots}", own.len(), names.join(", "));
        to.ran(DeviceRun { event, name, start: batch.submitted, end: end.max(batch.submitted), by_host: true });
        left = others;
    }
}
