"""`torch.compile`: what is compiled as on the card, and what runs eagerly, with the reason."""

import copy
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled import compiler, generated, probed_code
from peaksight.virtual_gpu.compiled.compiler import part
from peaksight.virtual_gpu.compiled.inductor_answers import answer_inductor
from peaksight.virtual_gpu.compiled.origins import Origins
from peaksight.virtual_gpu.compiled.product_trials import SETTINGS, ProductTrials
from peaksight.virtual_gpu.compiled.tracing import Tracing, is_guarded
from peaksight.virtual_gpu.frames import is_ours
from peaksight.virtual_gpu.source_lines import SourceLines

_MODES = ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
# CUDA graphs, and trials of kernels that take no memory of their own.
_OPTIONS = ("triton.cudagraphs", "coordinate_descent_tuning")
# Inductor takes seconds for a hundred of them.
MAX_OPERATORS = 6000

Note = Callable[..., None]


class _TooLarge(Exception):
    """Inductor would take minutes."""


class Compiling:
    """`torch.compile` of one run."""

    def __init__(
        self,
        patches: Patches,
        requests: Any,
        capability: tuple[int, int],
        lines: SourceLines,
        origins: Origins,
        note: Note,
    ) -> None:
        """For a card of `capability`; `note(slug, place)` is told what is not as on the card."""
        self._patches, self._capability, self._lines, self._note = patches, capability, lines, note
        self._tracing, self._origins = Tracing(patches, requests), origins
        self._trials = ProductTrials()
        self._real = torch.compile
        self._is_loaded = False

    def compile(self, model: Any = None, **options: Any) -> Any:
        """As `torch.compile`; returns `model` itself where it is run eagerly."""
        if model is None:
            return lambda function: self.compile(function, **options)
        reason = self._reason(model, options)
        if reason is not None:
            self._eagerly(reason)
            return model
        return (
            self._compiled(model, options)
            if isinstance(model, (nn.Module, type))
            else self._at_first_call(model, options)
        )

    def _at_first_call(self, function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
        """Libraries decorate functions that a script may never call: the compiler's import can wait until it does."""
        if self._is_loaded:
            return self._compiled(function, options)
        made: list[Callable[..., Any]] = []

        @functools.wraps(function)
        def first_compiled(*args: Any, **kwargs: Any) -> Any:
            if not made:
                made.append(self._compiled(function, options))
            return made[0](*args, **kwargs)

        vars(first_compiled)["_torchdynamo_inline"] = function  # what Dynamo traces where compiled code calls it
        return first_compiled

    def _compiled(self, model: Any, options: dict[str, Any]) -> Any:
        missing = self._load()
        if missing is not None:
            self._eagerly(missing)
            return model
        with self._tracing.under_way():
            return self._real(model, **self._supported(options))

    def _reason(self, model: Any, options: dict[str, Any]) -> str | None:
        """Why `model` is run eagerly, None where it is compiled."""
        backend = options.get("backend", "inductor")
        if options.get("disable"):
            return None
        if backend != "inductor":
            return f"the backend is {getattr(backend, '__name__', backend)}"
        if isinstance(getattr(model, "__self__", None), Optimizer):
            return "an optimizer's step"
        if self._capability < (7, 0):
            return "Triton does not know the card"
        return None

    def _load(self) -> str | None:
        if self._is_loaded:
            return None
        with self._tracing.imports():
            missing = compiler.load()
        if missing is not None:
            return f"there is no {missing}"
        self._is_loaded = True
        self._install(self._patches)
        return None

    def _supported(self, options: dict[str, Any]) -> dict[str, Any]:
        """`options` without what is not simulated; where the graph breaks, the rest is compiled all the same."""
        mode, chosen = options.get("mode"), dict(options.get("options") or {})
        config = part("torch._inductor.config")
        if mode in _MODES:
            self._note("compile-mode", mode)
            mode, chosen = None, part("torch._inductor").list_mode_options(mode) | chosen
        elif said := [name for name in (*_OPTIONS, *SETTINGS) if chosen.get(name, getattr(config, name, False))]:
            self._note("compile-mode", ", ".join(said))
        chosen = {name: value for name, value in chosen.items() if name not in _OPTIONS}
        return options | {"mode": mode, "options": chosen or None, "fullgraph": False}

    def _eagerly(self, reason: str) -> None:
        self._note("compile", f"{self._lines.current().source or 'somewhere'} ({reason})")

    def _install(self, patches: Patches) -> None:
        patches.callback(torch._dynamo.reset)
        patches.withdraw(is_guarded)
        generated.install(patches, self._trials.run)
        self._trials.install(patches)
        probed_code.install(patches)
        answer_inductor(patches)
        _keep_steps_eager(patches)
        frames, guards = part("torch._dynamo.convert_frame"), part("torch._dynamo.guards").CheckFunctionManager
        patches.set(frames.CatchErrorsWrapper, "__call__", self._frame(frames.CatchErrorsWrapper.__call__))
        patches.set(guards, "__init__", self._guarded(guards.__init__))
        inductor = torch._TorchCompileInductorWrapper
        patches.set(inductor, "__call__", self._graph(inductor.__call__))
        inner = part("torch._inductor.compile_fx")
        patches.set(inner, "_compile_fx_inner", self._half(inner._compile_fx_inner))
        lowering = part("torch._inductor.graph").GraphLowering
        patches.set(lowering, "_compile_to_module_lines", self._followed(lowering._compile_to_module_lines))

    def _frame(self, convert: Callable[..., Any]) -> Callable[..., Any]:
        """Dynamo meets a frame; one that it fails on is run as it is, with all that it calls."""

        def converted(wrapper: Any, frame: Any, *args: Any) -> Any:
            if is_ours(frame.f_code.co_filename):
                return compiler.skipped_frame(and_callees=False)
            with self._tracing.under_way():
                try:
                    return convert(wrapper, frame, *args)
                except Exception as error:
                    self._eagerly(_failure(error))
                    return compiler.skipped_frame(and_callees=True)

        return converted

    def _guarded(self, begin: Callable[..., None]) -> Callable[..., None]:
        """Compiled code is guarded by the function modes, of which the run has one more than the tracing."""

        signature = inspect.signature(begin)

        def guarded(*args: Any, **kwargs: Any) -> None:
            given = signature.bind(*args, **kwargs)
            choose = given.arguments.get("guard_filter_fn")
            given.arguments["guard_filter_fn"] = lambda guards: self._lasting(guards, choose)
            with self._tracing.with_modes_of_run() as stack:
                if given.arguments.get("output_graph") is not None:
                    given.arguments["output_graph"].torch_function_mode_stack = stack
                begin(*given.args, **given.kwargs)

        return guarded

    def _lasting(self, guards: Sequence[Any], choose: Callable[..., Sequence[bool]] | None) -> list[bool]:
        """What the run has in another place than the tracing is no reason to compile again."""
        chosen, away = choose(guards) if choose else [True for _ in guards], self._tracing.away()
        return [keep and id(guard.value) not in away for keep, guard in zip(chosen, guards, strict=True)]

    def _graph(self, compile_graph: Callable[..., Any]) -> Callable[..., Any]:
        """Inductor gets a graph."""

        def compiled(wrapper: Any, graph: Any, inputs: Any, **options: Any) -> Any:
            num_operators = len(graph.graph.nodes)
            if num_operators > MAX_OPERATORS:
                raise _TooLarge(f"a graph of {num_operators} operators")
            made = compile_graph(wrapper, graph, inputs, **options)
            self._note("compiled", self._lines.current().source)
            return made

        return compiled

    def _half(self, compile_half: Callable[..., Any]) -> Callable[..., Any]:
        """A forward, or a backward that is compiled when it is first called: then nothing else is left to run."""

        def compiled(graph: Any, *args: Any, **options: Any) -> Any:
            with self._tracing.under_way(), self._trials.left_out():
                eager = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
                try:
                    return compile_half(graph, *args, **options)
                except Exception as error:
                    if not options.get("is_backward"):
                        raise
                    self._eagerly(_failure(error))
                    return part("torch._functorch.aot_autograd").make_boxed_func(eager.forward)

        return compiled

    def _followed(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def written(lowering: Any, code: Any) -> Any:
            program = write(lowering, code)
            self._origins.add(program.__file__, code.line_map)
            return program

        return written


def _failure(error: Exception) -> str:
    cause = getattr(error, "inner_exception", None) or error.__cause__ or error
    if isinstance(cause, _TooLarge):
        return str(cause)
    words = str(cause).strip().partition("\n")[0]
    return f"the compiler failed: {type(cause).__name__}: {words[:100]}"


def _keep_steps_eager(patches: Patches) -> None:
    """The end of a step is that of an optimizer's, which hooks tell: Dynamo leaves them out."""
    classes = [Optimizer]
    for cls in classes:
        classes += cls.__subclasses__()
        if "step" in vars(cls):
            patches.set(cls, "step", torch._dynamo.disable(cls.step))
