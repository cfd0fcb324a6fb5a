"""Where in the person's code a message came from: the traceback before it, and the last step that the log counted."""

import re
from typing import Any

from peaksight.records import Phase

# Python's own frame; rich's in its box; IPython's, whose line stands behind an arrow further down.
_FRAMES = (
    re.compile(
        r'File "(?P<path>[^"\n]{1,400})", line (?P<line>\d{1,7}), in (?P<function>[^\n]{1,120})'
        r'(?:\n(?!\s*File ")(?P<code>[^\n]{0,300}))?'
    ),
    re.compile(r"(?:File )(?P<path>\S{1,300}\.py):(?P<line>\d{1,7}), in (?P<function>[\w.<>]{1,120})\("),
    re.compile(r"^(?P<path>Cell In\[\d{1,5}\]), line (?P<line>\d{1,7})", re.M),
    re.compile(r"^[\u2502|]\s(?P<path>\S[^\n\u2502]{0,300}\.py):(?P<line>\d{1,7}) in (?P<function>[\w<>]{1,80})", re.M),
    re.compile(
        r"^\[?(?P<path>[^\s\]]{1,300}\.py"
        r"|<ipython-input-\S{1,60}>)(?:\]\(\S{1,80}\))? in "
        r"(?P<function>[\w<>]{1,80}|<cell line: \d{1,7}>)\([^\n]{0,200}\n"
        r"(?:[^\n]{0,200}\n){0,4}?-{1,6}>\s?(?P<line>\d{1,7})(?P<code>[^\n]{0,300})",
        re.M,
    ),
)
_LIBRARY = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|^<(?:frozen|string|__array)|[/\\]torch[/\\](?:nn|optim"
    r"|autograd|utils|cuda|_)"
    r"|[/\\](?:transformers|accelerate|deepspeed|pytorch_lightning|lightning|peft|diffusers|jax|flax|haiku)[/\\]"
)
_START = re.compile(r"Traceback \(most recent call last\)")
_MAX_TRACEBACK = 24 << 10
_NUM_FRAMES = 60

# The phase by the functions on the stack, the first that matches from the outermost kind inwards.
_PHASES = (
    (Phase.SAVE, re.compile(r"save_pretrained|_save_checkpoint|save_checkpoint|_save\b|(?<!load_)state_dict\b"
    r"|torch\.save|gather_full")),
    (Phase.EVALUATION, re.compile(
        r"evaluat|prediction_step|prediction_loop|validat|\bpredict\b|nested_concat|pad_across_processes"
        r"|pad_and_concatenate|test_epoch"
        r"|\beval_|run_eval"
    )),
    (Phase.OPTIMIZER, re.compile(r"_init_group|optimizer_step|exp_avg|_single_tensor_|_multi_tensor_|[/\\]optim[/\\]"
    r"|optimizer\.step")),
    (Phase.BACKWARD, re.compile(r"run_backward|autograd[/\\]__init__|\.backward\(|in backward\b|_engine_run"
    r"|autograd\.grad\(")),
    (Phase.FORWARD, re.compile(r"\bforward\b|_call_impl|_wrapped_call|training_step|compute_loss|loss = ")),
    (Phase.INIT, re.compile(
        r"from_pretrained|load_state_dict|torch\.load|\.cuda\(|\.to\(|in _apply|in to\b|in cuda\b|__init__"
        r"|load_checkpoint"
        r"|prepare_model|_load_|deserialize"
    )),
)  # fmt: skip

_STEP = re.compile(
    r"(?:\b(?:global[_ ]?step|step|iter(?:ation)?|it|batch|update)s?\b[ :=#\[]{1,4}(\d{1,9})(?![,\d])"
    r"|(?<=[|\s])(\d{1,9})/\d{1,9} \[\d)",
    re.IGNORECASE,
)
_STEP_REACH = 6000


def place_of(before: str, body: str) -> dict[str, Any]:
    """`at`, `phase` and `frames` of a message, from the text before it and the message itself."""
    frames = _frames(_last_traceback(before))
    own = [frame for frame in frames if not _LIBRARY.search(frame["path"])]
    at = f"{_base(own[-1]['path'])}:{own[-1]['line']}" if own else ""
    words = "\n".join(f"{frame['path']} in {frame['function']} {frame['code']}" for frame in frames)
    shown = tuple(f"{_base(f['path'])}:{f['line']} in {f['function']}: {f['code']}" for f in frames)
    return {"at": at, "phase": phase_of(words or _hint(body)), "frames": shown[-12:]}


def _frames(traceback: str) -> list[dict[str, str]]:
    """The frames of a traceback in the order of the text, with path, line, function and code."""
    matches = sorted((match for pattern in _FRAMES for match in pattern.finditer(traceback)), key=lambda m: m.start())
    return [
        {name: (value or "").strip() for name, value in ({"function": "", "code": ""} | match.groupdict()).items()}
        for match in matches[-_NUM_FRAMES:]
    ]


def _base(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _hint(body: str) -> str:
    """Where there is no traceback, what the message itself calls."""
    return " ".join(re.findall(r"in \w+(?:\.\w+)*\(?|\[\[Node: [^\]\n]{1,200}", body))[:400]


def phase_of(words: str) -> Phase | None:
    """The phase that the functions on a stack belong to, None where they tell none."""
    return next((phase for phase, pattern in _PHASES if pattern.search(words)), None)


def _last_traceback(before: str) -> str:
    """The frames right before a message: those behind the last "Traceback", or the last frames at all."""
    near = before[-_MAX_TRACEBACK:]
    starts = [match.end() for match in _START.finditer(near)]
    return near[starts[-1] :] if starts else near[-8000:]


def step_before(text: str) -> int | None:
    """The last step that a progress bar or a log line counted before a message."""
    found = list(_STEP.finditer(text[-_STEP_REACH:]))
    return int(next(group for group in found[-1].groups() if group)) if found else None
