"""The writer of event files, and the one that people use."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..._core import Tensor
from ..._runtime.whole_files import text_written_whole
from . import _values as messages
from ._library import library
from ._media_writer import MediaWriter, tag_of

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """One event file.

    Args:
        log_dir: Its folder, which is made.
        max_queue: How many events wait at most before they are written.
        flush_secs: How often they are written at least.
        filename_suffix: The end of the file's name.

    Raises:
        ImportError: Neither ``tensorboard`` nor ``tensorboardX`` is installed.
    """

    def __init__(
        self, log_dir: str | os.PathLike[str], max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""
    ) -> None:
        self._log_dir = os.fspath(log_dir)
        Path(self._log_dir).mkdir(parents=True, exist_ok=True)
        self.event_writer = library().writer(self._log_dir, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        return self._log_dir

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event.

        Args:
            event: The message.
            step: The step that it belongs to.
            walltime: Its time in seconds since 1970; None: now.
        """
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a summary as an event.

        Args:
            summary: The message.
            global_step: The step that it belongs to.
            walltime: Its time in seconds since 1970; None: now.
        """
        self.add_event(library().event.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()


class SummaryWriter(MediaWriter):
    """Writes what TensorBoard shows. As a context manager it is closed at the end of the block.

    Args:
        log_dir: The folder for event files; None: ``runs/`` with the time, the host's name and ``comment``.
        comment: Appended to that name.
        purge_step: TensorBoard shall forget what was written from this step on, after a crash.
        max_queue: How many events wait at most before they are written.
        flush_secs: How often they are written at least.
        filename_suffix: The end of the file's name.

    Attributes:
        log_dir: The folder.

    Raises:
        ImportError: Neither ``tensorboard`` nor ``tensorboardX`` is installed.

    Example:
        >>> import os, tempfile
        >>> from rgrad.utils.tensorboard import SummaryWriter
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     for step in range(3):
        ...         writer.add_scalar("loss", rgrad.tensor(1.0 / (step + 1)), step)
        ...     writer.add_histogram("weights", rgrad.randn(100), 2)
        ...     writer.flush()
        ...     len(os.listdir(folder))
        1
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            name = f"{datetime.now().strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}"
            log_dir = os.path.join("runs", name)
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.default_bins = messages.default_bins()
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._embeddings = ""
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the folder itself; after ``close`` a new one."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._open(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                event, log = library().event.Event, library().event.SessionLog
                step, self.purge_step = self.purge_step, None
                self.file_writer.add_event(event(step=step, file_version="brain.Event:2"))
                self.file_writer.add_event(event(step=step, session_log=log(status=log.START)))
        return self.file_writer

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def get_logdir(self) -> str:
        """The folder for event files."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a number.

        Args:
            tag: Its name.
            scalar_value: A number, or a tensor or array of one element.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
            new_style: Write it as a tensor, which loads faster.
            double_precision: In the new style with 64 bits.
        """
        summary = messages.scalar(tag_of(tag, "add_scalar"), scalar_value, new_style, double_precision)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add several numbers to one plot. Each is a run of its own, in a folder of its own.

        Args:
            main_tag: The plot's name.
            tag_scalar_dict: The numbers by name.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
        """
        if not isinstance(tag_scalar_dict, Mapping):
            raise TypeError(f"add_scalars: expected tag_scalar_dict to be a dict, got {type(tag_scalar_dict).__name__}")
        walltime = time.time() if walltime is None else walltime
        self._get_file_writer()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{tag_of(main_tag, 'add_scalars').replace('/', '_')}_{tag}"
            summary = messages.scalar(main_tag, value)
            if folder not in self.all_writers:
                self.all_writers[folder] = self._open(folder)
            self.all_writers[folder].add_summary(summary, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Tensor, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add a whole tensor.

        Args:
            tag: Its name.
            tensor: The tensor, below 2 GB.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
        """
        summary = messages.tensor(tag_of(tag, "add_tensor"), tensor)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add a histogram.

        Args:
            tag: Its name.
            values: A tensor or array of any shape; all of it finite.
            global_step: The step.
            bins: ``"tensorflow"``, or what ``numpy.histogram`` takes: a number, edges, or the name of a rule.
            walltime: The time in seconds since 1970; None: now.
            max_bins: Join neighbouring bins until there are about so many.
        """
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        summary = messages.histogram(tag_of(tag, "add_histogram"), values, bins, max_bins)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add a histogram whose counts are known.

        Args:
            tag: Its name.
            min: The least value.
            max: The largest value.
            num: The number of values.
            sum: Their sum.
            sum_squares: The sum of their squares.
            bucket_limits: The right edge of each bin.
            bucket_counts: How many values are in each.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        limits, counts = ([float(x) for x in row] for row in (bucket_limits, bucket_counts))
        summary = messages.histogram_of_counts(
            tag_of(tag, "add_histogram_raw"), min, max, num, sum, sum_squares, limits, counts
        )
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Add text, which is shown as Markdown.

        Args:
            tag: Its name.
            text_string: The text.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
        """
        summary = messages.text(tag_of(tag, "add_text"), text_string)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """Add a model's graph: the operations that its forward records for backward, by module.

        The model is run once and left as it was, as by :func:`rgrad.autograd.graph.draw`.

        Args:
            model: The module.
            input_to_model: What it is called with: a tensor, a tuple or list of arguments, a dict of keyword arguments.
            verbose: Print the operations, too.
            use_strict_trace: Accepted as in PyTorch; nothing is traced here.
        """
        from ._graph import graph_def

        if input_to_model is None:
            raise ValueError("add_graph: input_to_model is missing; the graph is made by running the model")
        made = graph_def(model, input_to_model)
        if verbose:
            for node in made.node:
                print(f"{node.name}({', '.join(node.input)})")
        self._get_file_writer().add_event(library().event.Event(graph_def=made.SerializeToString()))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Not there: ONNX files are not read.

        Raises:
            NotImplementedError: Always; it says what to use.
        """
        raise NotImplementedError("add_onnx_graph: ONNX files are not read; use add_graph(model, input)")

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: list[str] | None = None,
    ) -> None:
        """Add vectors for TensorBoard's projector, in files of their own.

        Args:
            mat: A matrix with a vector in each row.
            metadata: A label for each; with a header a list of labels.
            label_img: An image for each, (N, C, H, W).
            global_step: The step.
            tag: The embedding's name.
            metadata_header: Names of the labels, where there are several for each vector.
        """
        from . import _projector

        step = 0 if global_step is None else int(global_step)
        coded = tag_of(tag, "add_embedding")
        for character in "%/\\":
            coded = coded.replace(character, f"%{ord(character):02x}")
        subdir = f"{step:05}/{coded}"
        folder = Path(self.log_dir) / subdir
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"Path: `{folder}` exists, but is a file. Cannot proceed.")
        array = messages.to_array(mat, "add_embedding")
        self._get_file_writer()
        self._embeddings += _projector.write(folder, array, metadata, metadata_header, label_img, subdir, tag, step)
        with text_written_whole(Path(self.log_dir) / "projector_config.pbtxt") as file:
            file.write(self._embeddings)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a curve of precision and recall.

        Args:
            tag: Its name.
            labels: What is right: 0 or 1 for each element.
            predictions: Probabilities.
            global_step: The step.
            num_thresholds: Number of thresholds, at most 127.
            weights: A weight for each element.
            walltime: The time in seconds since 1970; None: now.
        """
        summary = messages.pr_curve(tag_of(tag, "add_pr_curve"), labels, predictions, num_thresholds, weights)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add a curve of precision and recall whose values are known; all arguments have a value for each threshold.

        Args:
            tag: Its name.
            true_positive_counts: Rightly positive.
            false_positive_counts: Wrongly positive.
            true_negative_counts: Rightly negative.
            false_negative_counts: Wrongly negative.
            precision: The precision.
            recall: The recall.
            global_step: The step.
            num_thresholds: Number of thresholds, at most 127.
            weights: Accepted as in PyTorch; it has no effect.
            walltime: The time in seconds since 1970; None: now.
        """
        counts = [true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts]
        rows = [*counts, precision, recall]
        summary = messages.pr_curve_of_counts(tag_of(tag, "add_pr_curve_raw"), rows, num_thresholds)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Say which scalars stand in one chart; once for each writer.

        Args:
            layout: By category the charts, by title, each as ``["Multiline", tags]`` or
                ``["Margin", [value, lower, upper]]``.
        """
        if not isinstance(layout, Mapping):
            raise TypeError(f"add_custom_scalars: expected layout to be a dict, got {type(layout).__name__}")
        self._get_file_writer().add_summary(messages.custom_scalars(layout))

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show several scalars as lines of one chart.

        Args:
            tags: The scalars' names.
            category: The chart's category.
            title: Its title.
        """
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Show a scalar between two others.

        Args:
            tags: The names of the value, of the lower and of the upper limit.
            category: The chart's category.
            title: Its title.
        """
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Add hyperparameters and what came out with them, as a run of its own.

        Args:
            hparam_dict: Names and values: bool, str, float, int, a tensor of one element, or None (left out).
            metric_dict: Names and numbers.
            hparam_domain_discrete: For some hyperparameters all values that they can have.
            run_name: The name of the run's folder; None: the time.
            global_step: The step.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        summaries = messages.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as run:
            for summary in summaries:
                run._get_file_writer().add_summary(summary, global_step)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files. What is added afterwards opens new ones."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, *args: object) -> None:
        self.close()
