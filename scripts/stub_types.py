"""Types that make_stubs.py gives to parameters and results: the native module itself knows names, kinds and defaults.

Every public function finds all its types here, and every entry is used: make_stubs.py refuses anything else.
"""

from __future__ import annotations

from rgrad._runtime.absent_kinds import ABSENT_KINDS


def each(kind: str, names: str) -> dict[str, str]:
    """One type for many names."""
    return dict.fromkeys(names.split(), kind)


# Of parameters, by name; where a name means different things, by "function.name" or "Class.method.name". A star stands
# before a parameter that takes several arguments.
PARAMETERS = {
    **each(
        "Tensor",
        "input index mask source src weight target pos_weight gradient tensor1 tensor2 "
        "weights prepend append values condition a b bias "
        "resize_as_.the_template "
        "view_as.other reshape_as.other expand_as.other type_as.other equal.other allclose.other isclose.other "
        "query scaled_dot_product_attention.key scaled_dot_product_attention.value attn_mask w_ih w_hh b_ih b_hh "
        "gru_cell.hx rnn_tanh_cell.hx rnn_relu_cell.hx "
        "kron.other copy_.other is_same_size.other take_along_dim.indices "
        "split.tensor new_state out lerp.end __matmul__.value "
        "__rmatmul__.value _make_subclass.data _gradient_edge.tensor _leaf_hooks.tensor "
        "_path_cuts.tensor _path_cuts.wrt _tensor_memory.tensor "
        "_make_saved_tensor.tensor complex.real complex.imag polar.abs polar.angle",
    ),
    **each(
        "_bool",
        "keepdim requires_grad equal_nan train retain_graph create_graph non_blocking "
        "replacement accumulate sparse_grad unbiased pin_memory "
        "implicit strict copy force check_nan require_grad set_anomaly_enabled.enabled _set_grad_enabled.on "
        "set_warn_always.b _set_tangents_enabled.on "
        "_set_torch_function_enabled.on _skip_torch_function_once.on _set_inference_mode.on "
        "_set_multithreading_enabled.on _require_grad.on set_materialize_grads.value _set_fusion.enabled "
        "training transposed use_input_stats cudnn_enable cudnn_enabled is_causal enable_gqa "
        "set_autocast_enabled.enabled set_autocast_cache_enabled.enabled "
        "_set_fast_path.on _watch_modules.on materialize accumulate_grad allow_unreachable _after_fork.child "
        "_start_memory_recording.modules _hide_tangents.below",
    ),
    **each(
        "_int",
        "dim dim0 dim1 dim2 axis0 axis1 storage_offset offset diagonal start_dim end_dim chunks start length "
        "ignore_index n m k row col minlength decimals dimension step steps num_samples output_size num bytes "
        "num_groups groups pad "
        "select.index unfold.size random_.from_ random_.to seed "
        "_enter_level.size _hide_tangents.level _unhide_tangents.before _site_bench.n _fail_allocation_in.n "
        "_wgpu_fail_in.n "
        "_exit_level.number _unwrap.number _wrap.number _ask_below.number _exit_dual._number device.index "
        "split_size _set_fusion_least.elements _primal.level _tangent.level _wgpu_keep_pipelines.many "
        "_enter_module.number _start_memory_recording.most _site_place.site _site_module.site",
    ),
    **each(
        "_float",
        "rtol atol label_smoothing momentum p dropout_p lambd base from_ to huber_loss.delta smooth_l1_loss.beta",
    ),
    **each(
        "_Number",
        "alpha beta value eps negative_slope scale input_scale threshold min_val max_val nan posinf neginf correction",
    ),
    **each(
        "_Operand",
        "other min max exponent end fill_value s fill_.value index_fill.value index_fill_.value masked_fill.value "
        "masked_fill_.value linspace.start logspace.start lerp.weight result_type.tensor normal.mean "
        "normal.std scatter.src add.input sub.input subtract.input rsub.input div.input divide.input "
        "true_divide.input pow.input",
    ),
    **each("_Sizes", "size stride sizes shape split_sizes normalized_shape"),
    **each("_str", "reduction rounding_mode approximate reduce interpolation indexing device_type __format__.spec"),
    **each(
        "_Dims",
        "dims squeeze.dim squeeze_.dim roll.shifts destination movedim.source moveaxis.source "
        "sum.dim mean.dim nanmean.dim norm.dim "
        "var_mean.dim std_mean.dim",
    ),
    **each("_DType", "dtype d type1 type2 can_cast.from_ can_cast.to"),
    **each("_Device", "device"),
    **each("memory_format", "memory_format"),
    **each("Generator", "generator"),
    **each("Sequence[Tensor]", "tensors"),
    **each("Callable[..., Any]", "hook fn pack_hook unpack_hook _queue_callback.callback pack unpack"),
    **each("_int | Sequence[_int] | Tensor", "indices_or_sections"),
    **each(
        "Tensor | None",
        "running_mean running_var batch_norm.weight batch_norm.bias instance_norm.weight instance_norm.bias",
    ),
    **each("_int | _Sizes", "*size *sizes *shape *dims *repeats *shapes"),
    "*more": "_int",
    **each("Tensor | Sequence[Tensor]", "*tensors"),
    # Whatever can be made an array: numbers, nested sequences, arrays, tensors.
    **each("Any", "data obj *args layout key memo func types args kwargs new_tensor.data __contains__.key _memo"),
    "var.dim": "_Dims | _bool",
    "std.dim": "_Dims | _bool",
    "norm.p": "_Number | _str",
    "_dirichlet_grad.alpha": "Tensor",
    "_dirichlet_grad.total": "Tensor",
    "_polygamma_of.input": "Tensor | _int",
    "_polygamma_of.self": "Tensor",
    "_standard_gamma_grad.output": "Tensor",
    "bernoulli_.p": "_float | Tensor",
    "q": "_float | Sequence[_float] | Tensor",
    "lstm_cell.hx": "Sequence[Tensor]",
    "repeats": "_int | Sequence[_int] | Tensor",
    "indices": "Sequence[Tensor | None]",
    "split_size_or_sections": "_int | Sequence[_int]",
    "tensordot.dims": "_int | Sequence[Sequence[_int]]",
    "ndarray": "np.ndarray[Any, Any]",
    "array": "np.ndarray[Any, Any]",
    "device.type": "_str | _int | device",
    "_set_printoptions.threshold": "_int | None",
    "as_subclass.cls": "_type[Tensor]",
    "__dlpack__.stream": "_int | None",
    "__dlpack__.max_version": "tuple[_int, _int] | None",
    "__dlpack__.dl_device": "tuple[_int, _int] | None",
    **each(
        "_int | _Sizes",
        " ".join(f"conv{t}{n}d.{p}" for t in ("", "_transpose") for n in (1, 2, 3) for p in ("stride", "dilation"))
        + " conv_transpose1d.padding conv_transpose2d.padding conv_transpose3d.padding output_padding "
        "convolution.stride convolution.padding dilation _convolution_input.stride _convolution_weight.stride",
    ),
    **each("_int | _Sizes | _str", "conv1d.padding conv2d.padding conv3d.padding"),
    **each("Tensor | None", "save_for_backward.tensors save_for_forward.tensors"),
    **each("Tensor", "mark_dirty.tensors mark_non_differentiable.tensors"),
    "inputs": "_TensorsOrEdges | dict[_str, _V]",
    "_run_backward.tensors": "_TensorsOrEdges",
    "_run_backward.inputs": "_TensorsOrEdges | dict[Any, _V]",
}

# Of results, in the same way; rows of the table of operations and declared functions say theirs themselves.
RESULTS = {
    **each(
        "Tensor",
        "__abs__ __add__ __and__ __floordiv__ __ge__ __gt__ __invert__ __le__ __lshift__ __lt__ __matmul__ "
        "__mod__ __mul__ __neg__ __or__ __pos__ __radd__ __rand__ __reversed__ __rfloordiv__ __rlshift__ "
        "__rmatmul__ __rmod__ __rmul__ __ror__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __sub__ "
        "__truediv__ __xor__ _convolution_input _convolution_weight _make_dual _primal _require_grad _unrelated "
        "_wrap add adjoint argwhere as_strided as_tensor asarray batch_norm bernoulli bfloat16 cdouble cfloat chalf "
        "complex polar view_as_complex view_as_real "
        "binary_cross_entropy binary_cross_entropy_with_logits bincount block_diag bool broadcast_to byte cat "
        "char clamp clamp_max clamp_min clip clone column_stack concat concatenate conj conj_physical contiguous "
        "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution cpu "
        "cross_entropy cumprod cumsum detach diag diag_embed diagflat diagonal diff div divide double dropout "
        "dstack einsum empty empty_like empty_strided expand expand_as eye flatten flip fliplr flipud float "
        "from_numpy full full_like gather gelu get_rng_state group_norm gru_cell half hstack huber_loss imag "
        "index_add index_copy index_fill index_put index_select instance_norm int isclose kron l1_loss layer_norm "
        "linear linspace logspace long masked_fill masked_scatter masked_select mean moveaxis movedim mse_loss "
        "multinomial nanmean nanquantile narrow new new_empty new_full new_ones new_tensor new_zeros nll_loss "
        "norm ones ones_like permute pow prod quantile rand rand_like randint_like randn randn_like randperm "
        "ravel real repeat repeat_interleave reshape reshape_as resize resolve_conj resolve_neg rms_norm rnn_relu_cell "
        "rnn_tanh_cell roll rot90 round row_stack rsub scalar_tensor scaled_dot_product_attention scatter "
        "scatter_add select short smooth_l1_loss squeeze stack std sub subtract sum sum_to_size swapaxes swapdims "
        "_from_dlpack _neg_view "
        "t take take_along_dim tensor tensordot tile trace transpose tril tril_indices triu triu_indices "
        "true_divide type_as unflatten unfold unsqueeze var view_as vstack wgpu where zeros zeros_like",
    ),
    "__dlpack__": "object",
    "__dlpack_device__": "tuple[_int, _int]",
    **each(
        "_bool",
        "allclose equal can_cast is_complex is_floating_point is_grad_enabled is_inference_mode_enabled _is_view "
        "is_inference is_contiguous is_same_size is_signed is_frozen is_anomaly_enabled is_anomaly_check_nan_enabled "
        "is_warn_always_enabled is_conj is_neg is_autocast_enabled is_autocast_cache_enabled _autocasts "
        "_is_multithreading_enabled __bool__ __contains__ _wgpu_installed _fusion_enabled _is_checkpoint_valid "
        "_has_torch_function _has_torch_function_variadic _is_torch_function_enabled _set_torch_function_enabled "
        "_has_old_form _set_tangents_enabled _tangents_enabled "
        "_set_fusion dtype.__ge__ dtype.__gt__ dtype.__le__ dtype.__lt__ device.__ge__ "
        "_profiler_is_on _set_fast_path device.__gt__ device.__le__ device.__lt__",
    ),
    **each(
        "_int",
        "numel nelement dim ndimension storage_offset data_ptr element_size get_num_threads initial_seed "
        "max_memory_allocated memory_allocated _memory_idle _module_number _enter_module _hide_tangents "
        "seed get_device __len__ __int__ __index__ __hash__ _call_site _crc32 "
        "_current_graph_task_id _tracked_graph_task_id _ask_below _set_fusion_least _enter_level _top_level _level_of "
        "autocast_increment_nesting autocast_decrement_nesting _enter_dual UntypedStorage.nbytes UntypedStorage.size",
    ),
    **each("_str", "__repr__ __format__ _repr_html_ Node.name _get_cpu_capability"),
    **each("_float", "__float__ _site_bench"),
    **each("_complex", "__complex__"),
    **each(
        "_tuple[Tensor, ...]",
        "chunk split split_with_sizes tensor_split unbind broadcast_tensors meshgrid hsplit vsplit dsplit "
        "unsafe_chunk unsafe_split unsafe_split_with_sizes",
    ),
    **each(
        "None",
        "backward empty_cache retain_grad reset_peak_memory_stats set_default_dtype set_memory_limit set_num_threads "
        "set_rng_state _after_fork _before_fork _fail_allocation_in _increment_version _set_grad_enabled "
        "_set_multithreading_enabled _queue_callback set_anomaly_enabled _set_inference_mode _set_printoptions "
        "set_warn_always __delitem__ remove set_state set_default_device _push_saved_tensors_hooks "
        "_pop_saved_tensors_hooks _set_before_write _wgpu_check_process _wgpu_empty_cache _wgpu_fail_in _wgpu_install "
        "_wgpu_keep_pipelines _wgpu_reset_peak _wgpu_synchronize _push_torch_function_mode _skip_torch_function_once "
        "_exit_level _exit_dual _set_tangent __exit__ __enter__ mark_dirty mark_non_differentiable save_for_backward "
        "save_for_forward set_materialize_grads register_hooks set_autocast_enabled set_autocast_dtype "
        "set_autocast_cache_enabled clear_autocast_cache __init__ _profiler_stop _start_memory_recording "
        "_stop_memory_recording _unhide_tangents _define_module _watch_modules _check_recorded_write "
        "_expect_unused_totals _panic _pop_operation_watcher _push_operation_watcher _swap_tensor_impl _unused_total "
        "_write_tangent",
    ),
    **each("_DType", "get_default_dtype promote_types result_type get_autocast_dtype dtype.to_complex dtype.to_real"),
    **each("device", "get_default_device"),
    **each("HookHandle", "Tensor.register_hook register_post_accumulate_grad_hook Node.register_hook register_prehook"),
    **each("Generator", "manual_seed clone_state"),
    **each("Size", "broadcast_shapes"),
    **each("_tuple[Tensor, Tensor]", "var_mean std_mean gru rnn_tanh rnn_relu lstm_cell"),
    **each("np.ndarray[Any, np.dtype[Any]]", "numpy __array__"),
    **each("Iterator[Tensor]", "__iter__"),
    **each("SavedTensor", "_make_saved_tensor"),
    "lstm": "_tuple[Tensor, Tensor, Tensor]",
    "_graph_nodes": "_GraphNodes | None",
    "_use_count": "_int",
    "_from_old_form": "_tuple[_tuple[Any, ...], dict[str, Any]] | None",
    "_autocast_widened": "_tuple[Any, ...]",
    **each("Tensor", "_standard_gamma _sample_dirichlet _poisson _binomial"),
    **each("Tensor", "_linalg_cholesky _cholesky_solve _cholesky_inverse _linalg_lu_solve _linalg_inv"),
    **each("Tensor", "_linalg_solve _linalg_solve_triangular _linalg_det _linalg_eigvalsh _linalg_svdvals"),
    **each("Tensor", "_linalg_pinv _linalg_householder_product _linalg_matrices _linalg_floats _linalg_eigvals"),
    **each("Tensor", "_linalg_ldl_solve _linalg_matrix_exp _ormqr"),
    "_linalg_eig": "_return_types.linalg_eig",
    "_linalg_ldl_factor": "_return_types.linalg_ldl_factor",
    "_linalg_ldl_factor_ex": "_return_types.linalg_ldl_factor_ex",
    "_linalg_cholesky_ex": "_return_types.linalg_cholesky_ex",
    "_linalg_lu_factor": "_return_types.linalg_lu_factor",
    "_linalg_lu_factor_ex": "_return_types.linalg_lu_factor_ex",
    "_linalg_lu": "_return_types.linalg_lu",
    "_linalg_inv_ex": "_return_types.linalg_inv_ex",
    "_linalg_solve_ex": "_return_types.linalg_solve_ex",
    "_linalg_slogdet": "_return_types.linalg_slogdet",
    "_linalg_qr": "_return_types.linalg_qr",
    "_linalg_eigh": "_return_types.linalg_eigh",
    "_linalg_svd": "_return_types.linalg_svd",
    "_lu_unpack": "_return_types.lu_unpack",
    "_geqrf": "_return_types.geqrf",
    "aminmax": "_return_types.aminmax",
    "requires_grad_": "Self",
    "Generator.get_state": "Tensor",
    "_unwrap": "_tuple[Tensor, _bool]",
    "_take_slow_rules": "_tuple[list[_str], list[_str]]",
    "_tangent": "Tensor | None",
    "_function_apply_here": "_tuple[Any, Any]",
    "_gradient_edge": "_tuple[Node, _int]",
    "_refuse_saved_tensors_hooks": "_str | None",
    "_describe_call_site": "_str | None",
    "_wgpu_counts": "_tuple[_int, _int, _int, _int]",
    "_wgpu_description": "dict[_str, Any]",
    "_wgpu_memory": "_tuple[_int, _int, _int]",
    "_live_memory": "list[_tuple[_str, _int, _int, _int, _int]]",
    "_memory_recording": (
        "_tuple[list[_tuple[_str, _int, _int, _int, _int]], "
        "list[_tuple[_int, _str, _int, _int, _int, _bool]], _int] | None"
    ),
    "_site_place": "_tuple[_str, _int, _str] | None",
    "_site_module": "_str | None",
    "_tensor_memory": "_tuple[_int, _str, _int | None, _int, _int]",
    "_graph_memory": (
        "_tuple[list[_tuple[_int, _str, _int, _bool, list[_tuple[_str, _int]], list[_int], list[Any], Any]], "
        "list[_tuple[_int, _str, _int | None, _int, _int, _bool, _bool]]]"
    ),
    "_node_state": "_tuple[_int, _bool]",
    "_path_cuts": ("_tuple[_bool, _tuple[_str, _str, _int, _str] | None, list[_tuple[_str, _str, _int, _str]]]"),
    "_run_backward": "_tuple[Tensor | None, ...]",
    "_torch_function_modes": "list[Any]",
    "_fusion_counts": "_tuple[_int, _int, _int]",
    "_support_table": "list[_tuple[_str, _bool, _str, _str, _str]]",
    "_leaf_hooks": "list[Any]",
    **each("_tuple[_int, _int]", "_profiler_start _profiler_clock"),
    "_profiler_events": "_tuple[list[_tuple[Any, ...]], _int]",
    "_profiler_device_runs": "list[_tuple[_int | None, _str, _int, _int, _bool]]",
    "_profiler_range": "Any",
    "_profiler_stack": "_tuple[_str, ...]",
    # A Python number of the tensor's kind.
    "item": "_Number",
    # The Python numbers of a tensor, alone or in lists of lists; objects of any class; whatever a handler answers.
    **each(
        "Any",
        "tolist as_subclass __deepcopy__ __copy__ __array_wrap__ _make_subclass "
        "_ask_torch_function _disabled_torch_function_impl _pop_torch_function_mode "
        "_function_apply __call__ unpack",
    ),
}

# Of properties: type, and whether they can be read, written and deleted.
PROPERTIES = {
    **{f"Tensor.{name}": ("Tensor", "r") for name in ["T", "H", "mT", "mH"]},
    "Tensor.grad": ("Tensor | None", "rwd"),
    "Tensor._grad": ("Tensor | None", "r"),
    "Tensor.grad_dtype": ("_DType | None", "rwd"),
    "Tensor.data": ("Tensor", "rw"),
    "Tensor.real": ("Tensor", "rw"),
    "Tensor.imag": ("Tensor", "rw"),
    "Tensor.requires_grad": ("_bool", "rw"),
    "Tensor.volatile": ("_bool", "rw"),
    "Tensor.grad_fn": ("Node | None", "r"),
    "Tensor._base": ("Tensor | None", "r"),
    "Tensor.shape": ("Size", "r"),
    **{f"Tensor.{name}": ("_bool", "r") for name in ABSENT_KINDS},
    "Tensor.layout": ("Any", "r"),
    "Tensor.dtype": ("_DType", "r"),
    "Tensor.device": ("_DeviceObject", "r"),
    **{f"Tensor.{name}": ("_int", "r") for name in ["output_nr", "_version", "ndim", "nbytes", "itemsize"]},
    **{
        f"Tensor.{name}": ("_bool", "r")
        for name in ["is_leaf", "retains_grad", "is_cuda", "is_wgpu", "is_cpu", "is_meta", "is_sparse"]
    },
    **{f"dtype.{name}": ("_bool", "r") for name in ["is_floating_point", "is_complex", "is_signed"]},
    "dtype.itemsize": ("_int", "r"),
    "device.type": ("_str", "r"),
    "device.index": ("_int | None", "r"),
    "Generator.device": ("_DeviceObject", "r"),
    "HookHandle.id": ("_int", "r"),
    # What was saved are tensors, and None in the places of None.
    **{f"_FunctionCtx.{name}": ("_tuple[Tensor | Any, ...]", "r") for name in ["saved_tensors", "saved_variables"]},
    "_FunctionCtx.to_save": ("_tuple[Tensor | None, ...] | None", "r"),
    "_FunctionCtx.needs_input_grad": ("_tuple[_bool, ...]", "r"),
    "_FunctionCtx.materialize_grads": ("_bool", "r"),
    "SavedTensor.data": ("Tensor", "r"),
    "SavedTensor.unpack_hook": ("Any", "r"),
    "Node.call_site": ("_str | None", "r"),
    "Node.metadata": ("dict[Any, Any]", "r"),
    "Node.next_functions": ("_tuple[_tuple[Node | None, _int], ...]", "r"),
    "Node.requires_grad": ("_bool", "r"),
    "Node.variable": ("Tensor", "r"),
}

# Functions and methods with several forms: what stands between the brackets after the tensor, and the result. A result
# in brackets is for functions alone.
_OUT = "out: Tensor | None = None"
_SOURCE = "generator: Generator | None = None"
_PAIR = "out: _tuple[Tensor, Tensor] | None = None"
_OPTIONS = (
    "dtype: _DType | None = None, layout: Any = None, device: _Device | None = None, "
    "pin_memory: _bool = False, requires_grad: _bool = False"
)
_YES, _NO = "Literal[True]", "Literal[False]"
_DIM = "dim: _int | None = None"
_TWO, _THREE = "_tuple[Tensor, Tensor]", "_tuple[Tensor, Tensor, Tensor]"
OVERLOADS: dict[str, list[tuple[str, str]]] = {
    **{
        name: [
            (f"dim: None = None, keepdim: _bool = False, *, {_OUT}", "Tensor"),
            (f"dim: _int, keepdim: _bool = False, *, {_PAIR}", f"_return_types.{name}"),
        ]
        for name in ("median", "nanmedian")
    },
    # The second tensor stands in the place of `dim`, or is named.
    **{
        name: [
            (f"dim: None = None, keepdim: _bool = False, *, other: None = None, {_OUT}", "Tensor"),
            (f"dim: _int, keepdim: _bool = False, *, other: None = None, {_PAIR}", f"_return_types.{name}"),
            (f"dim: Tensor, *, {_OUT}", "Tensor"),
            (f"*, other: Tensor, {_OUT}", "Tensor"),
        ]
        for name in ("max", "min")
    },
    "nonzero": [
        (f"*, as_tuple: Literal[False] = False, {_OUT}", "Tensor"),
        ("*, as_tuple: Literal[True]", "_tuple[Tensor, ...]"),
    ],
    # Each flag is one more result; it is given by name, or by place after those before it.
    "unique": [
        (f"sorted: _bool = True, return_inverse: {_NO} = False, return_counts: {_NO} = False, {_DIM}", "Tensor"),
        (f"sorted: _bool = True, *, return_inverse: {_YES}, return_counts: {_NO} = False, {_DIM}", _TWO),
        (f"sorted: _bool, return_inverse: {_YES}, return_counts: {_NO} = False, {_DIM}", _TWO),
        (f"sorted: _bool = True, return_inverse: {_NO} = False, *, return_counts: {_YES}, {_DIM}", _TWO),
        (f"sorted: _bool, return_inverse: {_NO}, return_counts: {_YES}, {_DIM}", _TWO),
        (f"sorted: _bool = True, *, return_inverse: {_YES}, return_counts: {_YES}, {_DIM}", _THREE),
        (f"sorted: _bool, return_inverse: {_YES}, return_counts: {_YES}, {_DIM}", _THREE),
        (
            f"sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, {_DIM}",
            "Tensor | _tuple[Tensor, ...]",
        ),
    ],
    "unique_consecutive": [
        (f"return_inverse: {_NO} = False, return_counts: {_NO} = False, {_DIM}", "Tensor"),
        (f"return_inverse: {_YES}, return_counts: {_NO} = False, {_DIM}", _TWO),
        (f"return_inverse: {_NO} = False, *, return_counts: {_YES}, {_DIM}", _TWO),
        (f"return_inverse: {_NO}, return_counts: {_YES}, {_DIM}", _TWO),
        (f"return_inverse: {_YES}, return_counts: {_YES}, {_DIM}", _THREE),
        (f"return_inverse: _bool = False, return_counts: _bool = False, {_DIM}", "Tensor | _tuple[Tensor, ...]"),
    ],
}
FUNCTION_OVERLOADS = {
    # Of one tensor a tensor, of several as many.
    **{
        name: [
            ("tensor: Tensor, /", "Tensor"),
            ("tensors: Sequence[Tensor], /", "_tuple[Tensor, ...]"),
            ("tensor: Tensor, other: Tensor, /, *tensors: Tensor", "_tuple[Tensor, ...]"),
        ]
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    },
    "arange": [
        (f"end: _Operand, *, {_OUT}, {_OPTIONS}", "Tensor"),
        (f"start: _Operand, end: _Operand, step: _Operand = 1, *, {_OUT}, {_OPTIONS}", "Tensor"),
    ],
    "normal": [
        (f"mean: Tensor, std: Tensor | _float = 1.0, size: None = None, *, {_SOURCE}, {_OUT}", "Tensor"),
        (f"mean: _float, std: Tensor, size: None = None, *, {_SOURCE}, {_OUT}", "Tensor"),
        (
            f"mean: _float, std: _float, size: _Sizes, *, generator: Generator | None = None, {_OUT}, {_OPTIONS}",
            "Tensor",
        ),
    ],
    "randint": [
        (f"high: _int, size: _Sizes, *, generator: Generator | None = None, {_OUT}, {_OPTIONS}", "Tensor"),
        (
            f"low: _int, high: _int, size: _Sizes, *, generator: Generator | None = None, {_OUT}, {_OPTIONS}",
            "Tensor",
        ),
    ],
    "where": [
        ("condition: Tensor, input: None = None, other: None = None, *, out: None = None", "_tuple[Tensor, ...]"),
        (f"condition: Tensor, input: _Operand, other: _Operand, *, {_OUT}", "Tensor"),
    ],
}
METHOD_OVERLOADS = {
    "nonzero": [
        ("*, as_tuple: Literal[False] = False", "Tensor"),
        ("*, as_tuple: Literal[True]", "_tuple[Tensor, ...]"),
    ],
    "size": [("dim: None = None", "Size"), ("dim: _int", "_int")],
    "stride": [("dim: None = None", "_tuple[_int, ...]"), ("dim: _int", "_int")],
    "view": [
        ("*shape: _int | _Sizes", "Tensor"),
        ("*, size: _Sizes", "Tensor"),
        ("dtype: _DType", "Tensor"),
    ],
    "type": [
        ("dtype: None = None, non_blocking: _bool = False, *, memory_format: memory_format | None = None", "_str"),
        ("dtype: _DType | _str, non_blocking: _bool = False, *, memory_format: memory_format | None = None", "Tensor"),
    ],
}

# Definitions that are better said by hand.
BY_HAND = {
    "Tensor.__getitem__": "def __getitem__(self, key: _Index, /) -> Tensor: ...",
    "Tensor.__torch_function__": (
        "def __torch_function__(cls, func: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any: ..."
    ),
    "Tensor.__setitem__": "def __setitem__(self, key: _Index, value: _Operand, /) -> None: ...",
    "Tensor.__eq__": "def __eq__(self, value: object, /) -> Tensor: ...  # type: ignore[override]",
    "Tensor.__ne__": "def __ne__(self, value: object, /) -> Tensor: ...  # type: ignore[override]",
    "Tensor.__pow__": "def __pow__(self, value: _Operand, mod: None = None, /) -> Tensor: ...",
    "Tensor.__rpow__": "def __rpow__(self, value: _Operand, mod: None = None, /) -> Tensor: ...",
    "Tensor.__ipow__": "def __ipow__(self, value: _Operand, /) -> Self: ...  # type: ignore[misc]",
    "Tensor.__reduce_ex__": "def __reduce_ex__(self, protocol: SupportsIndex) -> Any: ...",
    "Tensor.to": (
        "@overload\n"
        "    def to(self, dtype: _DType, non_blocking: _bool = False, copy: _bool = False, *, "
        "memory_format: memory_format | None = None) -> Tensor: ...\n"
        "    @overload\n"
        "    def to(self, device: _Device | None = None, dtype: _DType | None = None, non_blocking: _bool = False, "
        "copy: _bool = False, *, memory_format: memory_format | None = None) -> Tensor: ...\n"
        "    @overload\n"
        "    def to(self, other: Tensor, non_blocking: _bool = False, copy: _bool = False, *, "
        "memory_format: memory_format | None = None) -> Tensor: ..."
    ),
}
