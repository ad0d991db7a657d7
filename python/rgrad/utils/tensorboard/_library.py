"""The package that defines the messages in event files and appends them: ``tensorboard`` or ``tensorboardX``."""

import functools
import itertools
import os
import threading
import time
from importlib import import_module
from typing import Any

# For each package: where its messages are, and the module of its `EventFileWriter`. The first that there is is used.
PACKAGES = {
    "tensorboard": {
        "event": "tensorboard.compat.proto.event_pb2",
        "summary": "tensorboard.compat.proto.summary_pb2",
        "tensor": "tensorboard.compat.proto.tensor_pb2",
        "tensor_shape": "tensorboard.compat.proto.tensor_shape_pb2",
        "graph": "tensorboard.compat.proto.graph_pb2",
        "node_def": "tensorboard.compat.proto.node_def_pb2",
        "attr_value": "tensorboard.compat.proto.attr_value_pb2",
        "versions": "tensorboard.compat.proto.versions_pb2",
        "hparams_api": "tensorboard.plugins.hparams.api_pb2",
        "hparams": "tensorboard.plugins.hparams.plugin_data_pb2",
        "layout": "tensorboard.plugins.custom_scalar.layout_pb2",
        "mesh": "tensorboard.plugins.mesh.plugin_data_pb2",
        "pr_curve": "tensorboard.plugins.pr_curve.plugin_data_pb2",
        "writer": "tensorboard.summary.writer.event_file_writer",
    },
    "tensorboardX": {
        "event": "tensorboardX.proto.event_pb2",
        "summary": "tensorboardX.proto.summary_pb2",
        "tensor": "tensorboardX.proto.tensor_pb2",
        "tensor_shape": "tensorboardX.proto.tensor_shape_pb2",
        "graph": "tensorboardX.proto.graph_pb2",
        "node_def": "tensorboardX.proto.node_def_pb2",
        "attr_value": "tensorboardX.proto.attr_value_pb2",
        "versions": "tensorboardX.proto.versions_pb2",
        "hparams_api": "tensorboardX.proto.api_pb2",
        "hparams": "tensorboardX.proto.plugin_hparams_pb2",
        "layout": "tensorboardX.proto.layout_pb2",
        "mesh": "tensorboardX.proto.plugin_mesh_pb2",
        "pr_curve": "tensorboardX.proto.plugin_pr_curve_pb2",
        "writer": "tensorboardX.event_file_writer",
    },
}


_files = itertools.count()


class DirectWriter:
    """Appends events at once, with the part of tensorboardX that writes files.

    Its own queue is read by another thread, for which its `flush` does not wait.

    Args:
        log_dir: The folder.
        max_queue: After so many events they are flushed.
        flush_secs: After so many seconds, too, when the next event comes.
        filename_suffix: The end of the file's name.
    """

    def __init__(self, log_dir: str, max_queue: int, flush_secs: int, filename_suffix: str) -> None:
        # Its names have only seconds; two writers within one would write to one file.
        unique = f".{os.getpid()}.{next(_files)}{filename_suffix}"
        writer: Any = import_module(PACKAGES["tensorboardX"]["writer"])
        self._file = writer.EventsWriter(os.path.join(log_dir, "events"), unique)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._waiting = 0
        self._flushed = time.monotonic()
        self._lock = threading.Lock()
        self._closed = False

    def add_event(self, event: Any) -> None:
        with self._lock:
            if self._closed:
                raise ValueError("add_event: this event file was closed")
            self._file.write_event(event)
            self._waiting += 1
            if self._waiting > self._max_queue or time.monotonic() - self._flushed > self._flush_secs:
                self._flush()

    def _flush(self) -> None:
        self._file.flush()
        self._waiting = 0
        self._flushed = time.monotonic()

    def flush(self) -> None:
        with self._lock:
            if not self._closed:
                self._flush()

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._file.close()


class Library:
    """One of the packages.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._modules = PACKAGES[name]
        # What every summary needs is imported now, so that an incomplete installation is noticed here.
        self.summary = self.module("summary")
        self.event = self.module("event")
        self.tensor = self.module("tensor")
        self.tensor_shape = self.module("tensor_shape")
        writer = self.module("writer")
        self.writer: Any = DirectWriter if name == "tensorboardX" else writer.EventFileWriter

    def module(self, what: str) -> Any:
        """A module with messages; see ``PACKAGES``."""
        return import_module(self._modules[what])


@functools.cache
def library() -> Library:
    """The package that is installed.

    Raises:
        ImportError: None is.
    """
    reasons = []
    for name in PACKAGES:
        try:
            return Library(name)
        except ImportError as error:
            reasons.append(f"{name}: {error}")
    raise ImportError(
        "SummaryWriter writes event files with the package tensorboard or tensorboardX, and neither can be imported "
        f"({'; '.join(reasons)}). Install one: pip install tensorboard (with the viewer), or the smaller pip install "
        "tensorboardX"
    )
