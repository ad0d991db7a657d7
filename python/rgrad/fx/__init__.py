"""Programs as graphs of their calls: traced with proxies, changed, and run again.

:func:`symbolic_trace` runs a module with :class:`Proxy` objects in place of its inputs. What it calls becomes a
:class:`Graph`; a :class:`GraphModule` runs that. What a module does may not depend on values.
"""

from . import immutable_collections as immutable_collections
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
