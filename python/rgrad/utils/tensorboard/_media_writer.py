"""The methods of `SummaryWriter` for images, films, sound and meshes."""

from collections.abc import Mapping, Sequence
from typing import Any

from . import _media
from . import _values as messages


def tag_of(tag: Any, what: str) -> str:
    """The tag, if it is a text."""
    if not isinstance(tag, str):
        raise TypeError(f"{what}: expected the tag to be a str, got {type(tag).__name__}")
    return tag


class MediaWriter:
    """What is seen and heard."""

    def _get_file_writer(self) -> Any:
        raise NotImplementedError

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add an image.

        Args:
            tag: Its name.
            img_tensor: A tensor or array: bytes from 0 to 255, or of another dtype from 0 to 1.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
            dataformats: What its dimensions are: ``"CHW"``, ``"HWC"``, ``"HW"`` or another order.
        """
        summary = messages.image(tag_of(tag, "add_image"), img_tensor, dataformats)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add several images as one, eight in a row.

        Args:
            tag: Its name.
            img_tensor: A tensor or array: bytes from 0 to 255, or of another dtype from 0 to 1.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
            dataformats: What its dimensions are.
        """
        summary = messages.image(tag_of(tag, "add_images"), img_tensor, dataformats, "add_images")
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Add a figure of matplotlib, or several as one image.

        Args:
            tag: Its name.
            figure: The figure, or a list.
            global_step: The step.
            close: Close the figure.
            walltime: The time in seconds since 1970; None: now.
        """
        pixels = messages.figure_array(figure, close)
        formats = "NCHW" if pixels.ndim == 4 else "CHW"
        summary = messages.image(tag_of(tag, "add_figure"), pixels, formats, "add_figure")
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Add sound of one channel.

        Args:
            tag: Its name.
            snd_tensor: Samples from -1 to 1; what lies outside is clipped.
            global_step: The step.
            sample_rate: Samples per second.
            walltime: The time in seconds since 1970; None: now.
        """
        summary = messages.audio(tag_of(tag, "add_audio"), snd_tensor, sample_rate)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Sequence[str] | None = None,
    ) -> None:
        """Add an image with red rectangles. Needs the package Pillow.

        Args:
            tag: Its name.
            img_tensor: A tensor or array: bytes from 0 to 255, or of another dtype from 0 to 1.
            box_tensor: The rectangles, shape (N, 4): x0, y0, x1, y1 in pixels.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.
            rescale: How many times as large the image becomes.
            dataformats: What its dimensions are.
            labels: A text for each rectangle; ignored if there are not as many.

        Raises:
            ImportError: Pillow is not installed.
            ValueError: The rectangles have another shape.
        """
        summary = _media.image_with_boxes(
            tag_of(tag, "add_image_with_boxes"), img_tensor, box_tensor, rescale, dataformats, labels
        )
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Add films side by side, as an animated GIF. Needs the package Pillow.

        Args:
            tag: Its name.
            vid_tensor: Shape (N, T, C, H, W): bytes from 0 to 255, or of another dtype from 0 to 1.
            global_step: The step.
            fps: Frames per second.
            walltime: The time in seconds since 1970; None: now.

        Raises:
            ImportError: Pillow is not installed.
            ValueError: The tensor has another shape, or ``fps`` is not positive.
        """
        summary = _media.video(tag_of(tag, "add_video"), vid_tensor, fps)
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Mapping[str, Any] | None = None,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Add meshes or clouds of points.

        Args:
            tag: Its name.
            vertices: Shape (B, N, 3): the places of the points.
            colors: Shape (B, N, 3): the colours of the points, from 0 to 255.
            faces: Shape (B, M, 3): for each triangle the numbers of its points.
            config_dict: Classes and options of ThreeJS.
            global_step: The step.
            walltime: The time in seconds since 1970; None: now.

        Raises:
            ValueError: A tensor has another shape.
        """
        summary = _media.mesh(tag_of(tag, "add_mesh"), vertices, colors, faces, config_dict)
        self._get_file_writer().add_summary(summary, global_step, walltime)
