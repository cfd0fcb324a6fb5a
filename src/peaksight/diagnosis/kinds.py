"""The causes that `peaksight read` names in logs and snapshots, and the rules of `peaksight run` on the same mechanism.

A log decides less than a run that was looked at: where two rules are possible, the more general one stands here.
"""

RULE_OF_KIND = {
    "activations-batch": "activations",
    "attention-scores-quadratic": "materialised-attention",
    "checkpoint-ineffective": "checkpointing-inactive",
    "conv-workspace": "workspaces",
    "eval-predictions-accumulated": "evaluation-accumulates",
    "linalg-workspace": "workspaces",
    "memory-grows-over-steps": "grows-each-step",
    "model-state-too-big": "model-state",
    "optimizer-state-first-step": "model-state",
    "save-time-state-dict": "save-copies",
    "single-huge-tensor": "one-large-tensor",
    "varying-sizes-or-two-steps-alive": "graph-kept",
}
