"""What the larger examples share: their options, the data of digits, and the memory that tensors hold."""

import argparse
from pathlib import Path

import matplotlib as mpl

import rgrad
from rgrad.vision import datasets

mpl.use("Agg")  # draw into files, whether or not there is a screen


def number(kind, low, high):
    """An argparse type: a number of this kind from `low` up to `high`."""

    def parse(text):
        value = kind(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be from {low} to {high}, got {text}")
        return value

    parse.__name__ = kind.__name__  # argparse names it where the text is no number at all
    return parse


def parser(description):
    """A parser with the options of every example."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seed", type=number(int, 0, 2**32 - 1), default=0, help="of weights and shuffling (0)")
    made.add_argument("--device", choices=["cpu", "wgpu"], default="cpu", help="where to compute (cpu)")
    made.add_argument("--out", type=Path, default=Path(__file__).parent / "output", help="directory for what is left")
    return made


def begin(parser, argv):
    """The options; the directory is made and the seed set."""
    args = parser.parse_args(argv)
    if args.device == "wgpu" and not rgrad.wgpu.is_available():
        parser.error("--device wgpu: no adapter was found; docs/devices.md says what is needed")
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"cannot make the directory of --out: {error}")
    rgrad.manual_seed(args.seed)
    return args


def digits(train, folder=None):
    """Images (N, 1, H, W) in [0, 1] and classes (N,): MNIST's if its folder is given, else the bundled 8x8 digits."""
    found = datasets.Digits(train=train) if folder is None else datasets.MNIST(folder, train=train)
    return found.data.unsqueeze(1).float() / 255, found.targets


def memory(device):
    """The bytes that tensors hold now on a device."""
    return rgrad.cuda.memory_allocated(device)  # the name under which PyTorch's programs ask


def peak_memory(device):
    """The most bytes that tensors held since `forget_peak`."""
    return rgrad.cuda.max_memory_allocated(device)


def forget_peak(device):
    rgrad.cuda.reset_peak_memory_stats(device)
