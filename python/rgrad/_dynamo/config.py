"""Settings that programs change. None has an effect: nothing is compiled."""

suppress_errors: bool = False
verbose: bool = False
cache_size_limit: int = 8
recompile_limit: int = 8
accumulated_cache_size_limit: int = 256
automatic_dynamic_shapes: bool = True
assume_static_by_default: bool = True
dynamic_shapes: bool = True
capture_scalar_outputs: bool = False
capture_dynamic_output_shape_ops: bool = False
optimize_ddp: bool = True
guard_nn_modules: bool = True
inline_inbuilt_nn_modules: bool = True
log_level: int = 30
disable: bool = False
