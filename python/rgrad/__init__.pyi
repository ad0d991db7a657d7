"""What the package has. Written by scripts/make_package_stub.py from __init__.py: do not edit."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from . import __future__ as __future__
from . import _core as _core
from . import _tensor_str as _tensor_str
from . import accelerator as accelerator
from . import amp as amp
from . import autograd as autograd
from . import backends as backends
from . import compiler as compiler
from . import cpu as cpu
from . import cuda as cuda
from . import distributed as distributed
from . import distributions as distributions
from . import func as func
from . import hub as hub
from . import jit as jit
from . import linalg as linalg
from . import memory as memory
from . import mps as mps
from . import multiprocessing as multiprocessing
from . import nn as nn
from . import ops as ops
from . import optim as optim
from . import overrides as overrides
from . import profiler as profiler
from . import random as random
from . import return_types as return_types
from . import serialization as serialization
from . import special as special
from . import testing as testing
from . import utils as utils
from . import version as version
from . import vision as vision
from . import wgpu as wgpu
from . import xpu as xpu
from ._core import ArgumentTypeError as ArgumentTypeError
from ._core import ArgumentValueError as ArgumentValueError
from ._core import DisableTorchFunction as DisableTorchFunction
from ._core import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._core import DTypeError as DTypeError
from ._core import Generator as Generator
from ._core import GraphError as GraphError
from ._core import InternalError as InternalError
from ._core import MissingError as MissingError
from ._core import Node as Node
from ._core import OperationError as OperationError
from ._core import OutOfMemoryError as OutOfMemoryError
from ._core import OutOfRangeError as OutOfRangeError
from ._core import RgradError as RgradError
from ._core import ShapeError as ShapeError
from ._core import Size as Size
from ._core import Tensor as Tensor
from ._core import UntypedStorage as UntypedStorage
from ._core import abs as abs
from ._core import absolute as absolute
from ._core import acos as acos
from ._core import acosh as acosh
from ._core import adaptive_avg_pool1d as adaptive_avg_pool1d
from ._core import adaptive_max_pool1d as adaptive_max_pool1d
from ._core import add as add
from ._core import addbmm as addbmm
from ._core import addcdiv as addcdiv
from ._core import addcmul as addcmul
from ._core import addmm as addmm
from ._core import addmv as addmv
from ._core import addr as addr
from ._core import adjoint as adjoint
from ._core import all as all
from ._core import allclose as allclose
from ._core import amax as amax
from ._core import amin as amin
from ._core import aminmax as aminmax
from ._core import angle as angle
from ._core import any as any
from ._core import arange as arange
from ._core import arccos as arccos
from ._core import arccosh as arccosh
from ._core import arcsin as arcsin
from ._core import arcsinh as arcsinh
from ._core import arctan as arctan
from ._core import arctan2 as arctan2
from ._core import arctanh as arctanh
from ._core import argmax as argmax
from ._core import argmin as argmin
from ._core import argsort as argsort
from ._core import argwhere as argwhere
from ._core import as_strided as as_strided
from ._core import as_tensor as as_tensor
from ._core import asarray as asarray
from ._core import asin as asin
from ._core import asinh as asinh
from ._core import atan as atan
from ._core import atan2 as atan2
from ._core import atanh as atanh
from ._core import atleast_1d as atleast_1d
from ._core import atleast_2d as atleast_2d
from ._core import atleast_3d as atleast_3d
from ._core import autocast_decrement_nesting as autocast_decrement_nesting
from ._core import autocast_increment_nesting as autocast_increment_nesting
from ._core import avg_pool1d as avg_pool1d
from ._core import baddbmm as baddbmm
from ._core import batch_norm as batch_norm
from ._core import bernoulli as bernoulli
from ._core import bfloat16 as bfloat16
from ._core import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from ._core import bincount as bincount
from ._core import bitwise_and as bitwise_and
from ._core import bitwise_left_shift as bitwise_left_shift
from ._core import bitwise_not as bitwise_not
from ._core import bitwise_or as bitwise_or
from ._core import bitwise_right_shift as bitwise_right_shift
from ._core import bitwise_xor as bitwise_xor
from ._core import block_diag as block_diag
from ._core import bmm as bmm
from ._core import bool as bool
from ._core import broadcast_shapes as broadcast_shapes
from ._core import broadcast_tensors as broadcast_tensors
from ._core import broadcast_to as broadcast_to
from ._core import can_cast as can_cast
from ._core import cat as cat
from ._core import ceil as ceil
from ._core import celu as celu
from ._core import channels_last as channels_last
from ._core import channels_last_3d as channels_last_3d
from ._core import chunk as chunk
from ._core import clamp as clamp
from ._core import clamp_max as clamp_max
from ._core import clamp_min as clamp_min
from ._core import clear_autocast_cache as clear_autocast_cache
from ._core import clip as clip
from ._core import clone as clone
from ._core import column_stack as column_stack
from ._core import concat as concat
from ._core import concatenate as concatenate
from ._core import conj as conj
from ._core import conj_physical as conj_physical
from ._core import contiguous_format as contiguous_format
from ._core import conv1d as conv1d
from ._core import conv2d as conv2d
from ._core import conv3d as conv3d
from ._core import conv_tbc as conv_tbc
from ._core import conv_transpose1d as conv_transpose1d
from ._core import conv_transpose2d as conv_transpose2d
from ._core import conv_transpose3d as conv_transpose3d
from ._core import convolution as convolution
from ._core import copysign as copysign
from ._core import cos as cos
from ._core import cosh as cosh
from ._core import count_nonzero as count_nonzero
from ._core import cummax as cummax
from ._core import cummin as cummin
from ._core import cumprod as cumprod
from ._core import cumsum as cumsum
from ._core import default_generator as default_generator
from ._core import deg2rad as deg2rad
from ._core import device as device
from ._core import diag as diag
from ._core import diag_embed as diag_embed
from ._core import diagflat as diagflat
from ._core import diagonal as diagonal
from ._core import diagonal_scatter as diagonal_scatter
from ._core import diff as diff
from ._core import dist as dist
from ._core import div as div
from ._core import divide as divide
from ._core import dot as dot
from ._core import double as double
from ._core import dropout as dropout
from ._core import dsplit as dsplit
from ._core import dstack as dstack
from ._core import dtype as dtype
from ._core import empty as empty
from ._core import empty_cache as empty_cache
from ._core import empty_like as empty_like
from ._core import empty_strided as empty_strided
from ._core import eq as eq
from ._core import equal as equal
from ._core import erf as erf
from ._core import erfc as erfc
from ._core import exp as exp
from ._core import exp2 as exp2
from ._core import expm1 as expm1
from ._core import eye as eye
from ._core import fix as fix
from ._core import flatten as flatten
from ._core import flip as flip
from ._core import fliplr as fliplr
from ._core import flipud as flipud
from ._core import float as float
from ._core import float16 as float16
from ._core import float32 as float32
from ._core import float64 as float64
from ._core import floor as floor
from ._core import floor_divide as floor_divide
from ._core import fmax as fmax
from ._core import fmin as fmin
from ._core import fmod as fmod
from ._core import frac as frac
from ._core import from_numpy as from_numpy
from ._core import full as full
from ._core import full_like as full_like
from ._core import gather as gather
from ._core import ge as ge
from ._core import ger as ger
from ._core import get_autocast_dtype as get_autocast_dtype
from ._core import get_default_device as get_default_device
from ._core import get_default_dtype as get_default_dtype
from ._core import get_device as get_device
from ._core import get_num_threads as get_num_threads
from ._core import get_rng_state as get_rng_state
from ._core import greater as greater
from ._core import greater_equal as greater_equal
from ._core import grid_sampler as grid_sampler
from ._core import grid_sampler_2d as grid_sampler_2d
from ._core import grid_sampler_3d as grid_sampler_3d
from ._core import group_norm as group_norm
from ._core import gru as gru
from ._core import gru_cell as gru_cell
from ._core import gt as gt
from ._core import half as half
from ._core import hardshrink as hardshrink
from ._core import hsplit as hsplit
from ._core import hstack as hstack
from ._core import hypot as hypot
from ._core import imag as imag
from ._core import index_add as index_add
from ._core import index_copy as index_copy
from ._core import index_fill as index_fill
from ._core import index_put as index_put
from ._core import index_select as index_select
from ._core import initial_seed as initial_seed
from ._core import inner as inner
from ._core import instance_norm as instance_norm
from ._core import int as int
from ._core import int8 as int8
from ._core import int16 as int16
from ._core import int32 as int32
from ._core import int64 as int64
from ._core import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from ._core import is_anomaly_enabled as is_anomaly_enabled
from ._core import is_autocast_cache_enabled as is_autocast_cache_enabled
from ._core import is_autocast_enabled as is_autocast_enabled
from ._core import is_complex as is_complex
from ._core import is_conj as is_conj
from ._core import is_floating_point as is_floating_point
from ._core import is_grad_enabled as is_grad_enabled
from ._core import is_inference as is_inference
from ._core import is_inference_mode_enabled as is_inference_mode_enabled
from ._core import is_neg as is_neg
from ._core import is_warn_always_enabled as is_warn_always_enabled
from ._core import isclose as isclose
from ._core import isfinite as isfinite
from ._core import isinf as isinf
from ._core import isnan as isnan
from ._core import isneginf as isneginf
from ._core import isposinf as isposinf
from ._core import kron as kron
from ._core import kthvalue as kthvalue
from ._core import layer_norm as layer_norm
from ._core import ldexp as ldexp
from ._core import le as le
from ._core import lerp as lerp
from ._core import less as less
from ._core import less_equal as less_equal
from ._core import linspace as linspace
from ._core import log as log
from ._core import log1p as log1p
from ._core import log2 as log2
from ._core import log10 as log10
from ._core import log_softmax as log_softmax
from ._core import logaddexp as logaddexp
from ._core import logaddexp2 as logaddexp2
from ._core import logcumsumexp as logcumsumexp
from ._core import logical_and as logical_and
from ._core import logical_not as logical_not
from ._core import logical_or as logical_or
from ._core import logical_xor as logical_xor
from ._core import logit as logit
from ._core import logspace as logspace
from ._core import logsumexp as logsumexp
from ._core import long as long
from ._core import lstm as lstm
from ._core import lstm_cell as lstm_cell
from ._core import lt as lt
from ._core import manual_seed as manual_seed
from ._core import masked_fill as masked_fill
from ._core import masked_scatter as masked_scatter
from ._core import masked_select as masked_select
from ._core import matmul as matmul
from ._core import max as max
from ._core import max_memory_allocated as max_memory_allocated
from ._core import max_pool1d as max_pool1d
from ._core import max_pool1d_with_indices as max_pool1d_with_indices
from ._core import max_pool2d as max_pool2d
from ._core import max_pool3d as max_pool3d
from ._core import maximum as maximum
from ._core import mean as mean
from ._core import median as median
from ._core import memory_allocated as memory_allocated
from ._core import memory_format as memory_format
from ._core import meshgrid as meshgrid
from ._core import min as min
from ._core import minimum as minimum
from ._core import mm as mm
from ._core import mode as mode
from ._core import moveaxis as moveaxis
from ._core import movedim as movedim
from ._core import msort as msort
from ._core import mul as mul
from ._core import multinomial as multinomial
from ._core import multiply as multiply
from ._core import mv as mv
from ._core import nan_to_num as nan_to_num
from ._core import nanmean as nanmean
from ._core import nanmedian as nanmedian
from ._core import nanquantile as nanquantile
from ._core import nansum as nansum
from ._core import narrow as narrow
from ._core import ne as ne
from ._core import neg as neg
from ._core import negative as negative
from ._core import nonzero as nonzero
from ._core import norm as norm
from ._core import normal as normal
from ._core import not_equal as not_equal
from ._core import numel as numel
from ._core import ones as ones
from ._core import ones_like as ones_like
from ._core import outer as outer
from ._core import permute as permute
from ._core import pow as pow
from ._core import prelu as prelu
from ._core import preserve_format as preserve_format
from ._core import prod as prod
from ._core import promote_types as promote_types
from ._core import quantile as quantile
from ._core import rad2deg as rad2deg
from ._core import rand as rand
from ._core import rand_like as rand_like
from ._core import randint as randint
from ._core import randint_like as randint_like
from ._core import randn as randn
from ._core import randn_like as randn_like
from ._core import randperm as randperm
from ._core import ravel as ravel
from ._core import real as real
from ._core import reciprocal as reciprocal
from ._core import relu as relu
from ._core import remainder as remainder
from ._core import renorm as renorm
from ._core import repeat_interleave as repeat_interleave
from ._core import reset_peak_memory_stats as reset_peak_memory_stats
from ._core import reshape as reshape
from ._core import resolve_conj as resolve_conj
from ._core import resolve_neg as resolve_neg
from ._core import result_type as result_type
from ._core import rms_norm as rms_norm
from ._core import rnn_relu as rnn_relu
from ._core import rnn_relu_cell as rnn_relu_cell
from ._core import rnn_tanh as rnn_tanh
from ._core import rnn_tanh_cell as rnn_tanh_cell
from ._core import roll as roll
from ._core import rot90 as rot90
from ._core import round as round
from ._core import row_stack as row_stack
from ._core import rsqrt as rsqrt
from ._core import rsub as rsub
from ._core import scalar_tensor as scalar_tensor
from ._core import scatter as scatter
from ._core import scatter_add as scatter_add
from ._core import seed as seed
from ._core import select as select
from ._core import select_scatter as select_scatter
from ._core import set_anomaly_enabled as set_anomaly_enabled
from ._core import set_autocast_cache_enabled as set_autocast_cache_enabled
from ._core import set_autocast_dtype as set_autocast_dtype
from ._core import set_autocast_enabled as set_autocast_enabled
from ._core import set_default_device as set_default_device
from ._core import set_default_dtype as set_default_dtype
from ._core import set_memory_limit as set_memory_limit
from ._core import set_num_threads as set_num_threads
from ._core import set_rng_state as set_rng_state
from ._core import set_warn_always as set_warn_always
from ._core import sgn as sgn
from ._core import short as short
from ._core import sigmoid as sigmoid
from ._core import sign as sign
from ._core import sin as sin
from ._core import sinh as sinh
from ._core import slice_scatter as slice_scatter
from ._core import softmax as softmax
from ._core import sort as sort
from ._core import split as split
from ._core import split_with_sizes as split_with_sizes
from ._core import sqrt as sqrt
from ._core import square as square
from ._core import squeeze as squeeze
from ._core import stack as stack
from ._core import std as std
from ._core import std_mean as std_mean
from ._core import sub as sub
from ._core import subtract as subtract
from ._core import sum as sum
from ._core import swapaxes as swapaxes
from ._core import swapdims as swapdims
from ._core import t as t
from ._core import take as take
from ._core import take_along_dim as take_along_dim
from ._core import tan as tan
from ._core import tanh as tanh
from ._core import tensor as tensor
from ._core import tensor_split as tensor_split
from ._core import tensordot as tensordot
from ._core import threshold as threshold
from ._core import tile as tile
from ._core import topk as topk
from ._core import trace as trace
from ._core import transpose as transpose
from ._core import tril as tril
from ._core import tril_indices as tril_indices
from ._core import triu as triu
from ._core import triu_indices as triu_indices
from ._core import true_divide as true_divide
from ._core import trunc as trunc
from ._core import uint8 as uint8
from ._core import unbind as unbind
from ._core import unflatten as unflatten
from ._core import unique as unique
from ._core import unique_consecutive as unique_consecutive
from ._core import unsafe_chunk as unsafe_chunk
from ._core import unsafe_split as unsafe_split
from ._core import unsafe_split_with_sizes as unsafe_split_with_sizes
from ._core import unsqueeze as unsqueeze
from ._core import var as var
from ._core import var_mean as var_mean
from ._core import vdot as vdot
from ._core import vsplit as vsplit
from ._core import vstack as vstack
from ._core import where as where
from ._core import xlogy as xlogy
from ._core import zeros as zeros
from ._core import zeros_like as zeros_like
from ._functions.einsum import einsum as einsum
from ._functions.elements import fill as fill
from ._functions.elements import float_power as float_power
from ._functions.elements import frexp as frexp
from ._functions.elements import gcd as gcd
from ._functions.elements import heaviside as heaviside
from ._functions.elements import is_signed as is_signed
from ._functions.elements import lcm as lcm
from ._functions.elements import nextafter as nextafter
from ._functions.elements import positive as positive
from ._functions.elements import range as range
from ._functions.elements import signbit as signbit
from ._functions.methods import binomial as binomial
from ._functions.methods import is_distributed as is_distributed
from ._functions.methods import poisson as poisson
from ._functions.numeric import bucketize as bucketize
from ._functions.numeric import cartesian_prod as cartesian_prod
from ._functions.numeric import combinations as combinations
from ._functions.numeric import cumulative_trapezoid as cumulative_trapezoid
from ._functions.numeric import gradient as gradient
from ._functions.numeric import is_nonzero as is_nonzero
from ._functions.numeric import is_same_size as is_same_size
from ._functions.numeric import isin as isin
from ._functions.numeric import searchsorted as searchsorted
from ._functions.numeric import trapezoid as trapezoid
from ._functions.numeric import trapz as trapz
from ._functions.numeric import unravel_index as unravel_index
from ._functions.numeric import vander as vander
from ._functions.statistics import corrcoef as corrcoef
from ._functions.statistics import cov as cov
from ._functions.statistics import cross as cross
from ._functions.statistics import histc as histc
from ._functions.statistics import histogram as histogram
from ._functions.statistics import histogramdd as histogramdd
from ._functions.windows import bartlett_window as bartlett_window
from ._functions.windows import blackman_window as blackman_window
from ._functions.windows import hamming_window as hamming_window
from ._functions.windows import hann_window as hann_window
from ._functions.windows import kaiser_window as kaiser_window
from ._functions.writes import alias_copy as alias_copy
from ._functions.writes import as_strided_copy as as_strided_copy
from ._functions.writes import as_strided_scatter as as_strided_scatter
from ._functions.writes import detach_copy as detach_copy
from ._functions.writes import diagonal_copy as diagonal_copy
from ._functions.writes import expand_copy as expand_copy
from ._functions.writes import index_reduce as index_reduce
from ._functions.writes import narrow_copy as narrow_copy
from ._functions.writes import nonzero_static as nonzero_static
from ._functions.writes import permute_copy as permute_copy
from ._functions.writes import put as put
from ._functions.writes import scatter_reduce as scatter_reduce
from ._functions.writes import select_copy as select_copy
from ._functions.writes import split_copy as split_copy
from ._functions.writes import squeeze_copy as squeeze_copy
from ._functions.writes import t_copy as t_copy
from ._functions.writes import transpose_copy as transpose_copy
from ._functions.writes import unbind_copy as unbind_copy
from ._functions.writes import unfold_copy as unfold_copy
from ._functions.writes import unsqueeze_copy as unsqueeze_copy
from ._functions.writes import view_copy as view_copy
from ._runtime.fusion import fusion as fusion
from ._runtime.info import finfo as finfo
from ._runtime.info import iinfo as iinfo
from ._runtime.info import is_tensor as is_tensor
from ._runtime.info import typename as typename
from ._runtime.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from ._runtime.settings import compile as compile
from ._runtime.settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from ._runtime.settings import get_float32_matmul_precision as get_float32_matmul_precision
from ._runtime.settings import get_num_interop_threads as get_num_interop_threads
from ._runtime.settings import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from ._runtime.settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from ._runtime.settings import set_float32_matmul_precision as set_float32_matmul_precision
from ._runtime.settings import set_flush_denormal as set_flush_denormal
from ._runtime.settings import set_num_interop_threads as set_num_interop_threads
from ._runtime.settings import use_deterministic_algorithms as use_deterministic_algorithms
from ._tensor.legacy_types import BFloat16Tensor as BFloat16Tensor
from ._tensor.legacy_types import BoolTensor as BoolTensor
from ._tensor.legacy_types import ByteTensor as ByteTensor
from ._tensor.legacy_types import CharTensor as CharTensor
from ._tensor.legacy_types import DoubleTensor as DoubleTensor
from ._tensor.legacy_types import FloatTensor as FloatTensor
from ._tensor.legacy_types import HalfTensor as HalfTensor
from ._tensor.legacy_types import IntTensor as IntTensor
from ._tensor.legacy_types import LongTensor as LongTensor
from ._tensor.legacy_types import ShortTensor as ShortTensor
from ._tensor.legacy_types import set_default_tensor_type as set_default_tensor_type
from ._tensor.printing import set_printoptions as set_printoptions
from .amp.autocast_mode import autocast as autocast
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import inference_mode as inference_mode
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .func import vmap as vmap
from .linalg._determinants import logdet as logdet
from .linalg._factor import cholesky_inverse as cholesky_inverse
from .linalg._factor import cholesky_solve as cholesky_solve
from .linalg._factor import lu_unpack as lu_unpack
from .linalg._older import cholesky as cholesky
from .linalg._older import det as det
from .linalg._older import frobenius_norm as frobenius_norm
from .linalg._older import inverse as inverse
from .linalg._older import lu as lu
from .linalg._older import lu_solve as lu_solve
from .linalg._older import matrix_exp as matrix_exp
from .linalg._older import matrix_power as matrix_power
from .linalg._older import nuclear_norm as nuclear_norm
from .linalg._older import orgqr as orgqr
from .linalg._older import pinverse as pinverse
from .linalg._older import qr as qr
from .linalg._older import slogdet as slogdet
from .linalg._older import svd as svd
from .linalg._older import triangular_solve as triangular_solve
from .linalg._products import chain_matmul as chain_matmul
from .nn._summary import summary as summary
from .nn.functional import bilinear as bilinear
from .nn.functional import channel_shuffle as channel_shuffle
from .nn.functional import cosine_similarity as cosine_similarity
from .nn.functional import pairwise_distance as pairwise_distance
from .nn.functional import pdist as pdist
from .nn.functional import pixel_shuffle as pixel_shuffle
from .nn.functional import pixel_unshuffle as pixel_unshuffle
from .nn.functional import selu as selu
from .nn.functional import selu_ as selu_
from .nn.functional._distance import cdist as cdist
from .serialization import load as load
from .serialization import save as save
from .special._bessel import i0 as i0
from .special._gamma import digamma as digamma
from .special._gamma import lgamma as lgamma
from .special._gamma import mvlgamma as mvlgamma
from .special._gamma import polygamma as polygamma
from .special._incomplete import igamma as igamma
from .special._incomplete import igammac as igammac
from .special._normal import erfinv as erfinv
from .special._simple import sinc as sinc

_C = _core
__version__: str
newaxis: None
abs_ = _core.Tensor.abs_
acos_ = _core.Tensor.acos_
acosh_ = _core.Tensor.acosh_
addmv_ = _core.Tensor.addmv_
arccos_ = _core.Tensor.arccos_
arccosh_ = _core.Tensor.arccosh_
arcsin_ = _core.Tensor.arcsin_
arcsinh_ = _core.Tensor.arcsinh_
arctan_ = _core.Tensor.arctan_
arctanh_ = _core.Tensor.arctanh_
asin_ = _core.Tensor.asin_
asinh_ = _core.Tensor.asinh_
atan_ = _core.Tensor.atan_
atanh_ = _core.Tensor.atanh_
ceil_ = _core.Tensor.ceil_
celu_ = _core.Tensor.celu_
clamp_ = _core.Tensor.clamp_
clamp_max_ = _core.Tensor.clamp_max_
clamp_min_ = _core.Tensor.clamp_min_
clip_ = _core.Tensor.clip_
conj_physical_ = _core.Tensor.conj_physical_
cos_ = _core.Tensor.cos_
cosh_ = _core.Tensor.cosh_
deg2rad_ = _core.Tensor.deg2rad_
detach_ = _core.Tensor.detach_
erf_ = _core.Tensor.erf_
erfc_ = _core.Tensor.erfc_
exp2_ = _core.Tensor.exp2_
exp_ = _core.Tensor.exp_
expm1_ = _core.Tensor.expm1_
fill_ = _core.Tensor.fill_
fix_ = _core.Tensor.fix_
floor_ = _core.Tensor.floor_
frac_ = _core.Tensor.frac_
gcd_ = _core.Tensor.gcd_
i0_ = _core.Tensor.i0_
index_put_ = _core.Tensor.index_put_
lcm_ = _core.Tensor.lcm_
ldexp_ = _core.Tensor.ldexp_
log10_ = _core.Tensor.log10_
log1p_ = _core.Tensor.log1p_
log2_ = _core.Tensor.log2_
log_ = _core.Tensor.log_
logit_ = _core.Tensor.logit_
nan_to_num_ = _core.Tensor.nan_to_num_
neg_ = _core.Tensor.neg_
negative_ = _core.Tensor.negative_
rad2deg_ = _core.Tensor.rad2deg_
reciprocal_ = _core.Tensor.reciprocal_
relu_ = _core.Tensor.relu_
resize_as_ = _core.Tensor.resize_as_
round_ = _core.Tensor.round_
rsqrt_ = _core.Tensor.rsqrt_
sigmoid_ = _core.Tensor.sigmoid_
sin_ = _core.Tensor.sin_
sinc_ = _core.Tensor.sinc_
sinh_ = _core.Tensor.sinh_
sqrt_ = _core.Tensor.sqrt_
square_ = _core.Tensor.square_
tan_ = _core.Tensor.tan_
tanh_ = _core.Tensor.tanh_
threshold_ = _core.Tensor.threshold_
trunc_ = _core.Tensor.trunc_
xlogy_ = _core.Tensor.xlogy_
zero_ = _core.Tensor.zero_
